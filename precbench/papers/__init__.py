"""The papers: their studies, drawings and own kinds of claims, found by entry points only."""
