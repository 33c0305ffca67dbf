"""Which tensors of two runs are compared: outputs of regions, and pairs by name or by value."""
