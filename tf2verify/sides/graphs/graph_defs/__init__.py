"""Graphs as GraphDefs: their parts, their functions inlined, sessions of them."""
