"""The survey.

Its tasks, and the values among which ``precbench rank`` places a method.
"""
