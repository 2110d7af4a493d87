"""A saved model: its file, probabilities, reasons for scores, drift of new rows."""
