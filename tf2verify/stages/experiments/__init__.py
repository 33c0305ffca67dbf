"""Runs of failed stages, made again with edits of the port's graph."""
