"""The port."""
