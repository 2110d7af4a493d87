"""Rows read block by block from files that may be larger than memory."""
