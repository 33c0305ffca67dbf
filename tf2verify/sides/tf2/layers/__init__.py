"""A port's layer: its parts, its variables, and what a call yields."""
