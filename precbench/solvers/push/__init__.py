"""The P-Norm Push, RankBoost and the IR Push."""
