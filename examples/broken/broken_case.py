"""Fails on purpose, at `no_new_variables`: the port makes a new offset at every call."""

import tf2verify
from examples.broken import equivalence_test, model


class BrokenScalingCase(equivalence_test.FixedScalingCase):
  layer_class = model.BrokenScalingLayer


if __name__ == '__main__':
  tf2verify.main()
