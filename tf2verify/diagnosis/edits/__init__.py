"""Edits of the port, each with the mistake that it would correct, and which are needed."""
