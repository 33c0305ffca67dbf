"""Stage 8: training steps."""
