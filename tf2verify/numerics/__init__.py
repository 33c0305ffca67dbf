"""Arrays compared, names paired: numpy only, records out, nothing raised for a mismatch."""
