"""The only code that runs TensorFlow."""
