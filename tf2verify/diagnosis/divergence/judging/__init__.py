"""Which differences are sources: gradients, updates and shapes that agree nevertheless."""
