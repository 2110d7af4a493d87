"""Files of the user's own."""
