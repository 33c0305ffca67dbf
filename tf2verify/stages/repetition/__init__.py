"""Stage 11: determinism."""
