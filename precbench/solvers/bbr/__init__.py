"""BBR and LCBR: the pairwise squared loss in closed form."""
