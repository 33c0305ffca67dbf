"""What rules look at: one file an area, frozen, gathered by the stages."""
