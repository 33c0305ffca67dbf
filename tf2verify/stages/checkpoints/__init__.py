"""Stage 9: checkpoints."""
