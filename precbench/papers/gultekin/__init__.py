"""Gultekin and Paisley (UAI 2020), BBR and LCBR."""
