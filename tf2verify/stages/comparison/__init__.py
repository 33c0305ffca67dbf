"""Arrays compared, rounding told from faults: for all stages."""
