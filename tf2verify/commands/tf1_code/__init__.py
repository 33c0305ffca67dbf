"""What TF1 code tells, for a first case: read from its source, which is not imported."""
