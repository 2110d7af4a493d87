"""OAM, PGD, AdaOAM and SPAM: online methods for the AUC."""
