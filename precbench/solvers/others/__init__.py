"""Methods of other libraries, ensembles of trees, and a stack of methods."""
