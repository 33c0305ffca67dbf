"""The ports of `examples.recorded_models.tf1`."""
