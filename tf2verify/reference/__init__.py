"""Builds, runs and records a TF1 model, with numpy, TensorFlow and the standard library only."""
