"""Sessions of the reference's graphs: their values, steps and starts."""
