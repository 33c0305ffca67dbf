"""Which operations of a graph read and write which variables, and in which order."""
