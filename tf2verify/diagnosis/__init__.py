"""Why values differ: evidence, the first divergence, and one table of known mistakes."""
