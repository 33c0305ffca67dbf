"""Stage 10: modes of execution."""
