"""The port in every mode of execution."""
