"""Kar, Narasimhan and Jain (NIPS 2014), gradients for measures that do not decompose."""
