"""Losses of either side: what they are fed, and what they may return."""
