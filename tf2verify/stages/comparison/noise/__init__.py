"""How much rounding changes, and what of a difference it explains."""
