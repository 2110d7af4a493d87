"""What is measured of a ranked list: its top, metrics, losses and statistics."""
