"""Tests of tf2verify.stages.comparison.proof.made_up_for."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.relation.proof.traced_functions import related
from tf2verify.relation.proof.differences.pairs import EXTRA, Unlike
from tf2verify.stages.comparison.proof.made_up_for import is_made_up_for

_X = np.float32([0.5, 1.5])


class _Run:
  """A run that yields the same result, except that it refuses some values."""

  def __init__(self, values, refuses=lambda value: False):
    self._values = values
    self._refuses = refuses

  def refetched(self, tensors, given):
    if any(self._refuses(value) for value in given.values()):
      return None
    return [given.get(name, self._values.get(name, np.float32([2.0, 3.0]))) for name in tensors]


class IsMadeUpForTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda value: bool(np.any(value < 1.0)), True),  # of what tf1 has there
    (lambda value: True, False),  # nothing can be given there
    (lambda value: False, False),  # the results stay
  )
  def test_values_that_the_port_refuses(self, refuses, expected):
    proof = related(lambda x: tf.exp(x), lambda x: tf.exp(tf.sin(x + 1.0)), [(2,)])
    given, added = (
      next(n for n, op in enumerate(side.graph.ops) if op.op_type == kind)
      for side, kind in ((proof.tf1, 'input'), (proof.tf2, 'AddV2'))
    )
    names = [side.graph.ops[n].tensors[0] for side, n in ((proof.tf1, given), (proof.tf2, added))]
    runs = _Run({names[0]: _X}), _Run({names[1]: _X + 1.0}, refuses)
    pair = Unlike(given, added, EXTRA, ('', 'AddV2 with 1'), (added,))
    self.assertIs(is_made_up_for(proof, pair, runs), expected)


if __name__ == '__main__':
  absltest.main()
