"""Kar, Narasimhan and Jain (ICML 2015): surrogates for precision at the top."""
