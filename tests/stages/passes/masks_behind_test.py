"""What TF1 masks before a lookup, and the port behind it."""

import abc

import numpy as np
import tensorflow as tf
from absl.testing import absltest, parameterized

from tests.stages import tiny_models
from tests.stages.first_failure import causes_of

v1 = tf.compat.v1
_ROWS, _WIDTH = 6, 4


class Masked(tiny_models.OneModel, abc.ABC):
  """Row 0 is padding: zeros in the table of TF1, a mask behind the lookup in the port."""

  mask = staticmethod(lambda inputs: inputs['ids'] > 0)

  def rows(self, inputs):
    table = v1.get_variable('table', [_ROWS, _WIDTH])
    return tf.nn.embedding_lookup(tf.concat([tf.zeros([1, _WIDTH]), table[1:]], 0), inputs['ids'])

  def others(self, inputs):
    return tf.gather(v1.get_variable('others', [_ROWS, _WIDTH]), inputs['others'])

  def model(self, inputs, training):
    net = tf.reduce_sum((self.others(inputs) + self.rows(inputs)) * inputs['weights'][..., None], 1)
    return v1.layers.dense(net, 3, name='out')

  def port(self, inputs, training):
    mask = tf.cast(self.mask(inputs), tf.float32)[..., None]
    net = self.others(inputs)
    net += tf.gather(v1.get_variable('table', [_ROWS, _WIDTH]), inputs['ids']) * mask
    return v1.layers.dense(tf.einsum('btd,bt->bd', net, inputs['weights']), 3, name='out')

  def make_inputs(self):
    numbers = np.random.default_rng(0)
    return {
      'ids': np.array([[1, 2, 0, 0], [3, 4, 5, 0], [2, 2, 1, 4]], np.int32),
      'others': numbers.integers(1, _ROWS, (3, 4)).astype(np.int32),
      'weights': numbers.uniform(0.1, 1.0, (3, 4)).astype(np.float32),
    }


class MasksBehindTest(parameterized.TestCase):
  def test_right(self):
    found, text = causes_of(self, Masked)
    self.assertEmpty(found, text)
    self.assertNotIn('FAILED', text)

  @parameterized.parameters(
    (lambda inputs: inputs['others'] > 0, "with the input ['ids'] it yields what tf1 does"),
    (lambda inputs: inputs['ids'] >= 0, 'is GreaterEqual in the port'),
  )
  def test_a_mask_of_something_else(self, mask, said):
    [found], text = causes_of(self, Masked, mask=staticmethod(mask))
    self.assertIn(said, found)
    self.assertIn('proven', text)

  def test_what_the_right_port_lacks_as_well_is_not_the_cause(self):
    mask = staticmethod(lambda inputs: inputs['weights'] > 0)
    [found], text = causes_of(self, Masked, mask=mask)
    self.assertNotIn('the port lacks', found, text)
    self.assertIn('the operation was not identified', found)
    self.assertIn('masks_behind_test.py:', found)


if __name__ == '__main__':
  absltest.main()
