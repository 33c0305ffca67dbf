"""Edits of a training step: its updates, its losses, its counts, the times of its reads."""
