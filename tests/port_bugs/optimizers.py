"""Mistakes of optimizers of one name, which do not take the same step."""

import numpy as np
import tensorflow as tf

from tests.port_bugs import contrib_optimizers, trained_models
from tests.port_bugs.port_bug import PortBug

v1 = tf.compat.v1
_STEPS = 'training_steps'


class KeptRmsProp(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.RMSPropOptimizer(0.01)


class RmsPropOfKeras(KeptRmsProp):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.RMSprop(0.01, epsilon=1e-10)


class LegacyRmsProp(KeptRmsProp):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.legacy.RMSprop(0.01)


class Adam(trained_models.FewSignals):
  def make_tf1_optimizer(self):
    return v1.train.AdamOptimizer(0.01)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)


class AdamWithEpsilonOfKeras(Adam):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(0.01)


class Adadelta(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.AdadeltaOptimizer(1.0)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adadelta(1.0, epsilon=1e-8)


class AdadeltaWithEpsilonOfKeras(Adadelta):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adadelta(1.0)


class AdamW(trained_models.Trained):
  """Weight decay beside Adam."""

  decay = 1e-4 / 0.001

  def make_tf1_optimizer(self):
    return contrib_optimizers.AdamWOptimizer(1e-4, learning_rate=0.001)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.AdamW(0.001, weight_decay=self.decay, epsilon=1e-8)


class AdamWWithDecayOfTf1(AdamW):
  decay = 1e-4


class KeptNadam(trained_models.Trained):
  def make_tf1_optimizer(self):
    return contrib_optimizers.NadamOptimizer(0.01)


class NadamOfKeras(KeptNadam):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Nadam(0.01, epsilon=1e-8)


class KeptLazyAdam(trained_models.Trained):
  """Looks other rows of an embedding up at every step."""

  def model(self, inputs, training):
    table = v1.get_variable('table', [5, 3])
    cursor = v1.get_variable(
      'cursor',
      shape=[],
      dtype=tf.int32,
      initializer=v1.zeros_initializer(),
      trainable=False,
      aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
    rows = tf.nn.embedding_lookup(table, tf.gather(inputs, cursor % 3))
    if training:
      with tf.control_dependencies([rows]):
        v1.add_to_collection(v1.GraphKeys.UPDATE_OPS, cursor.assign_add(1))
    return rows

  def fill_values(self, name, shape, dtype):
    return np.zeros(shape, dtype) if name == 'cursor' else super().fill_values(name, shape, dtype)

  def make_inputs(self):
    return np.array([[0, 1, 1, 4], [1, 2, 2, 4], [0, 1, 2, 4]], np.int32)

  def make_tf1_optimizer(self):
    return contrib_optimizers.LazyAdamOptimizer(0.01)


class LazyAdamOfKeras(KeptLazyAdam):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adam(0.01, epsilon=1e-8)


class Adagrad(trained_models.Trained):
  def make_tf1_optimizer(self):
    return v1.train.AdagradOptimizer(0.1)

  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adagrad(0.1)


class AdagradWithRateOfKeras(Adagrad):
  def make_tf2_optimizer(self):
    return tf.keras.optimizers.Adagrad()


PORT_BUGS = (
  PortBug(
    'B57',
    'RMSProp',
    tf1='tf.compat.v1.train.RMSPropOptimizer: the mean of squares starts at 1',
    mistake='tf.keras.optimizers.RMSprop, where it starts at 0, with the epsilon of TF1',
    stage=_STEPS,
    wrong=RmsPropOfKeras,
    right=KeptRmsProp,
    words=('starts at 0', '1 in TF1', 'tf.compat.v1.train.RMSPropOptimizer'),
  ),
  PortBug(
    'B57',
    'RMSProp',
    tf1='the same',
    mistake='tf.keras.optimizers.legacy.RMSprop with its default epsilon, outside the root',
    stage=_STEPS,
    wrong=LegacyRmsProp,
    right=KeptRmsProp,
    words=('starts at 0', '1 in TF1', 'tf.compat.v1.train.RMSPropOptimizer'),
  ),
  PortBug(
    'B58',
    'epsilon of Adam',
    tf1='tf.compat.v1.train.AdamOptimizer with epsilon 1e-08, and gradients of 1e-6',
    mistake='tf.keras.optimizers.Adam with its default, 1e-07',
    stage=_STEPS,
    wrong=AdamWithEpsilonOfKeras,
    right=Adam,
    words=('epsilon', '1e-08', '1e-07'),
  ),
  PortBug(
    'B59',
    'epsilon of Adadelta',
    tf1='tf.compat.v1.train.AdadeltaOptimizer with epsilon 1e-08',
    mistake='tf.keras.optimizers.Adadelta with its default, 1e-07',
    stage=_STEPS,
    wrong=AdadeltaWithEpsilonOfKeras,
    right=Adadelta,
    words=('epsilon', '1e-08', '1e-07'),
  ),
  PortBug(
    'B61',
    'decoupled weight decay',
    tf1="contrib's AdamWOptimizer(1e-4) takes 1e-4 of a weight",
    mistake='AdamW(weight_decay=1e-4) of Keras takes the learning rate times that',
    stage=_STEPS,
    wrong=AdamWWithDecayOfTf1,
    right=AdamW,
    words=('weight decay', 'learning rate', 'weight_decay=0.1'),
  ),
  PortBug(
    'B62',
    'Nadam',
    tf1="contrib's NadamOptimizer: Nesterov's look-ahead in Adam",
    mistake='tf.keras.optimizers.Nadam, with a schedule of the momentum',
    stage=_STEPS,
    wrong=NadamOfKeras,
    right=KeptNadam,
    words=('Nadam', 'schedule of the momentum'),
  ),
  PortBug(
    'B63',
    'LazyAdam',
    tf1="contrib's LazyAdamOptimizer updates the rows that were looked up",
    mistake='tf.keras.optimizers.Adam updates every row that has a first moment',
    stage=_STEPS,
    wrong=LazyAdamOfKeras,
    right=KeptLazyAdam,
    words=('rows whose gradient is zero', 'LazyAdam'),
  ),
  PortBug(
    'B65',
    'default learning rate',
    tf1='tf.compat.v1.train.AdagradOptimizer(0.1); TF1 has no default',
    mistake='tf.keras.optimizers.Adagrad(), with 0.001',
    stage=_STEPS,
    wrong=AdagradWithRateOfKeras,
    right=Adagrad,
    words=('learning rate', 'default of tf.keras.optimizers.Adagrad', '0.1'),
  ),
)
