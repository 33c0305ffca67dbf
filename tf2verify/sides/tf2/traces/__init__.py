"""The port's functions, traced as graphs, which can be run with edits and faults."""
