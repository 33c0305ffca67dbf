"""Another variable of the same shape, in an operation that the port spells in another way."""

import abc

import tensorflow as tf
from absl.testing import absltest

from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1


class _Tables(tiny_models.OneModel, abc.ABC):
  """Three tables, each read once for the inputs, and the last one for the outputs."""

  def model(self, inputs, training):
    net, tables = self.states(inputs)
    return tf.matmul(net, tables[2], transpose_b=True)

  def port(self, inputs, training):
    net, tables = self.states(inputs)
    return tf.einsum('bd,vd->bv', net, tables[self.last])

  def states(self, inputs):
    tables = [v1.get_variable(f'table{n}', [7, 3]) for n in range(3)]
    net = inputs
    for table in tables:
      net = net + tf.matmul(tf.nn.softmax(tf.matmul(net, table, transpose_b=True)), table)
    return net, tables

  last = 2


class WrongVariableTest(absltest.TestCase):
  def test_both_are_named(self):
    (cause,), text = causes_of(self, _Tables, last=0)
    self.assertRegex(cause, r'reads variable table0 .* with variable table2 it yields', text)

  def test_right_port(self):
    self.assertEqual(causes_of(self, _Tables)[0], [])


if __name__ == '__main__':
  absltest.main()
