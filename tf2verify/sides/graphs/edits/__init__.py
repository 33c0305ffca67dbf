"""Edits of the port's graph: operations of tf1 in the place of its own."""
