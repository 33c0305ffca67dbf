"""Tests of tf2verify.diagnosis.patterns.operations.slices: at the other end, and moved by one."""

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tf2verify.diagnosis.patterns.operations.slices import moved_by_one, other_end, slice_of
from tf2verify.sides.graphs.reading import GraphReader, Target

_X = np.arange(24.0, dtype=np.float32).reshape(2, 4, 3)


def _slice(take):
  with tf.Graph().as_default() as graph:
    taken = take(tf.constant(_X) + 0.0)
    target = Target('output', (taken.name,))
    op_graph = GraphReader(graph, {}, {}, {}).read([target], (), 'tf2')
  known = (slice_of(op_graph, n) for n in range(len(op_graph.ops)))
  return next(one for one in known if one is not None)


def _taken(one):
  masks = {name: int(value) for name, value in one.masks}
  return tf.strided_slice(_X, *one.bounds, **masks).numpy()


class OtherEndTest(parameterized.TestCase):
  @parameterized.parameters(
    (lambda x: x[:, :-2], lambda x: x[:, 2:], '2:'),
    (lambda x: x[:, 1:], lambda x: x[:, :-1], ':-1'),
    (lambda x: x[:, 1:, None], lambda x: x[:, :-1, None], ':-1'),
    (lambda x: x[0, :-1], lambda x: x[0, 1:], '1:'),
    (lambda x: x[..., 0:-1], lambda x: x[..., 1:], '1:'),
    (lambda x: x[:1, 1:], lambda x: x[:1, :-1], ':-1'),
  )
  def test_as_much(self, own, other, text):
    found = other_end(_slice(own))
    self.assertEqual(found.text, text)
    np.testing.assert_array_equal(_taken(found), other(_X))

  @parameterized.parameters(
    (lambda x: x[:, 1:-1],),
    (lambda x: x[:, :2],),
    (lambda x: x[:, ::2],),
    (lambda x: x[1:, :-1],),
  )
  def test_no_such_slice(self, own):
    self.assertIsNone(other_end(_slice(own)))

  @parameterized.parameters(
    (lambda x: x[:, 1:-1], [lambda x: x[:, 2:], lambda x: x[:, 0:-2]]),
    (lambda x: x[:, 1:], [lambda x: x[:, :-1]]),
    (lambda x: x[:, :2], [lambda x: x[:, 1:3]]),
    (lambda x: x[..., 1:2], [lambda x: x[..., 2:3], lambda x: x[..., :1]]),
    (lambda x: x[:, ::2], []),
  )
  def test_one_element_later_and_earlier(self, own, others):
    found = list(moved_by_one(_slice(own)))
    self.assertLen(found, len(others))
    for one, other in zip(found, others, strict=True):
      np.testing.assert_array_equal(_taken(one), other(_X))


if __name__ == '__main__':
  absltest.main()
