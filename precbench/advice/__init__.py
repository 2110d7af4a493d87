"""Which method for a list of one's own: compare, fit, measure, keep and score."""
