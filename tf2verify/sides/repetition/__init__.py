"""Both sides, run again."""
