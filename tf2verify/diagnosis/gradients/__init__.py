"""Mistakes that only gradients show: stopped, replaced or passed differently."""
