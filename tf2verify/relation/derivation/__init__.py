"""A variable map, derived from what the variables of both sides do."""
