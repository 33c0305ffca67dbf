"""Arrays compared: numpy only, records out, nothing raised for a mismatch."""
