"""Losses and update rules computed again in numpy."""
