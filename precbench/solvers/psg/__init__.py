"""Projected subgradient descent on the risk of all training rows."""
