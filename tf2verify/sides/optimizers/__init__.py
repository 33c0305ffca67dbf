"""Optimizers of either side: their settings, their parts, what they are given."""
