"""The papers.

Their studies, drawings and own kinds of claims, found by entry points only.
"""
