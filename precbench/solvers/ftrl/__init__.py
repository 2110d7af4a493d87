"""Follow the regularised leader."""
