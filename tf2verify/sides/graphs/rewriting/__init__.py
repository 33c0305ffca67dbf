"""Graphs rewritten to compute the same: without loops, conditions, state."""
