"""Stage 7: losses and metrics."""
