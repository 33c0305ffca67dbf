"""Runs of both sides from seeded initial values, and how these are drawn."""
