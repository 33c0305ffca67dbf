"""The user's lines that made the operations of a graph."""
