"""What of training steps is rounding."""
