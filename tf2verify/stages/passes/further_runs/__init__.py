"""Sides that agree, run with other inputs, sizes and values than the case's."""
