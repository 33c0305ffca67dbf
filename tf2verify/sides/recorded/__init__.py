"""The reference, read back from a recording."""
