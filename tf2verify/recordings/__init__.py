"""Recordings of TensorFlow 1.x, read without executing anything."""
