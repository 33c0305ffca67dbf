"""A port and its training step as graphs, of which every tensor can be asked for."""
