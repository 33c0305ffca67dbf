"""Globals, seeds and devices of the process: set, and put back."""
