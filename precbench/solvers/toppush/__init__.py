"""TopPush: the positives above the highest negatives."""
