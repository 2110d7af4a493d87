"""Strict reading of YAML files: plain data with places, and typed sections."""
