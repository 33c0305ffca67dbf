"""Graphs of the reference: built, seeded, changed, read."""
