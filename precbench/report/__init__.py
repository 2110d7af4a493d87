"""Tables and figures of an experiment, made from the files in its results folder alone.

No data set, solver or kernel is needed, so a figure can be redrawn on any machine.
"""
