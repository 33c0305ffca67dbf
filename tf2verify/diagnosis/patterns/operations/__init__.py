"""What operations of both sides tell: which ones they are, in which order, what they read."""
