"""Compiled inner loops: arrays in, arrays out; no random numbers, classes, metrics or clocks."""
