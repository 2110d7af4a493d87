"""What every other room stands on.

Errors, text, files, seeds, registries and processes.
"""
