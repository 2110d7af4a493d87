"""The cutting-plane method on the risk of all training rows."""
