"""Reads YAML files strictly: plain data with places, and typed sections."""
