"""What the steps that are taken do not reach: later ones, other gradients, other rows."""
