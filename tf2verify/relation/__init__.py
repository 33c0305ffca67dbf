"""How the tensors of the two sides relate: names, slots, keys, layouts, operations."""
