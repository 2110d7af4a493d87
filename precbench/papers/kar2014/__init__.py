"""Kar, Narasimhan and Jain (NIPS 2014): gradients for non-decomposable measures."""
