"""Tables and matrices in the user's own files."""
