"""Pairs of TF1 models and native ports of Keras 3, for `benchmarks/maps.py`."""
