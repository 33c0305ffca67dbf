"""Graphs of either side: recorded, read, run in part."""
