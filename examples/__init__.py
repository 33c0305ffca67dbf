"""Real models and their ports, each a folder with a case."""
