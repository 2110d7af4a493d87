"""Kar, Narasimhan and Jain (ICML 2015), surrogates and perceptrons for precision at the top."""
