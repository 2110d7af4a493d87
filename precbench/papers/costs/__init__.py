"""Costs of solvers, which several papers state."""
