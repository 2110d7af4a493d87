"""What every other room stands on: errors, text, files, seeds, registries and processes."""
