"""One training step of the port, its gradients and learning rates."""
