"""The reference: its graph, in a session."""
