"""A failed stage, looked into: what speaks for a cause before any edit is tried."""
