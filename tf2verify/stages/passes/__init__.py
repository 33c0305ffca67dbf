"""Stages 1 to 6: variables, forward pass, gradients."""
