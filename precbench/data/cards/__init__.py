"""Data sets with a card: registry, download, parsers, cache, stand-ins."""
