"""The reference kept: between rounds of one process, or between runs of the same machine."""
