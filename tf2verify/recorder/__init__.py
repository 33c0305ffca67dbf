"""The recorder: one file to be run where TensorFlow 1.x is."""
