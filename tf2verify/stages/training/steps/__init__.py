"""Training steps of both sides, taken side by side: their quantities, and notes."""
