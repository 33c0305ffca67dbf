"""How the same elements lie in the variables of either side."""
