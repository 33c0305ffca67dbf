"""The report as events that TensorBoard draws."""
