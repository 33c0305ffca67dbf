"""Terms: one normal form for every spelling of what an operation computes."""
