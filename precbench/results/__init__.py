"""Results folders: records of trials, their metrics, and tables of both."""
