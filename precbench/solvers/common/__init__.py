"""What the methods share: base classes, the driver of passes, parameters, rows and weights."""
