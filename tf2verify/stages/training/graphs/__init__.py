"""Training steps as graphs: edited, related, and their updates alone."""
