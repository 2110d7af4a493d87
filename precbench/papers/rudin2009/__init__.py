"""Rudin (JMLR 2009), the P-Norm Push."""
