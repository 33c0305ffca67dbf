"""Weights shared on one side only, and variables that nobody tracks: B06 to B09, B17, B18, B20."""

import abc

import tensorflow as tf
import tf_slim as slim

from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models

v1 = tf.compat.v1
layers = tf.keras.layers
_STAGE = 'variable_inventory'


class Siamese(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    first = v1.layers.dense(inputs, 3, tf.nn.relu, name='tower')
    second = v1.layers.dense(-inputs, 3, tf.nn.relu, name='tower', reuse=True)
    return first - second


class Towers(layers.Layer):
  """Two towers, of as many layer objects."""

  def __init__(self, names):
    super().__init__(name='siamese')
    made = {name: layers.Dense(3, 'relu', name=name) for name in dict.fromkeys(names)}
    self.towers = [made[name] for name in names]

  def call(self, inputs):
    first, second = self.towers
    return first(inputs) - second(-inputs)


class TwoTowers(Siamese):
  variable_names = {'tower/kernel': 'siamese/tower/kernel', 'tower/bias': 'siamese/tower/bias'}

  def make_tf2_layer(self):
    return Towers(('tower', 'tower_2'))


class OneTower(TwoTowers):
  def make_tf2_layer(self):
    return Towers(('tower', 'tower'))


class StackedCells(tiny_models.OneModel, abc.ABC):
  names = ('cell_0', 'cell_1')

  def model(self, inputs, training):
    return self.stacked(inputs, ('cell_0', 'cell_1'))

  def port(self, inputs, training):
    return self.stacked(inputs, self.names)

  def stacked(self, net, names):
    for name in names:
      with v1.variable_scope(name, reuse=v1.AUTO_REUSE):
        net, _ = v1.nn.rnn_cell.GRUCell(3)(net, net)
    return net


class OneCellTwice(StackedCells):
  names = ('cell_0', 'cell_0')


class TwoCells(StackedCells):
  pass


class TiedSoftmax(tiny_models.Embedded, abc.ABC):
  def model(self, inputs, training):
    table = v1.get_variable('wte', [5, 4])
    return tf.matmul(tf.gather(table, inputs), table, transpose_b=True)


class UntiedSoftmax(TiedSoftmax):
  def port(self, inputs, training):
    table = v1.get_variable('wte', [5, 4])
    return v1.layers.dense(tf.gather(table, inputs), 5, use_bias=False, name='logits')


class StillTiedSoftmax(TiedSoftmax):
  def port(self, inputs, training):
    table = v1.get_variable('wte', [5, 4])
    return tf.einsum('bd,vd->bv', tf.nn.embedding_lookup(table, inputs), table)


class LambdaHolder(tiny_models.ShimLayer):
  """A variable that only the closure of a `Lambda` layer knows."""

  def __init__(self, forward):
    super().__init__(forward)
    shift = tf.Variable(tf.zeros([3]), name='bias')
    self.add = layers.Lambda(lambda net: net + shift)

  @tiny_models.under_shim
  def call(self, inputs, training=False):
    return self.add(tf.matmul(inputs, tiny_models.kernel()))


class HeldByLambda(tiny_models.Affine):
  def make_tf2_layer(self):
    return LambdaHolder(self.model)


class AttributeHolder(LambdaHolder):
  def __init__(self, forward):
    super().__init__(forward)
    self.shift = tf.Variable(tf.zeros([3]), name='bias')
    self.add = layers.Lambda(lambda net: net + self.shift)


class HeldByAttribute(tiny_models.Affine):
  def make_tf2_layer(self):
    return AttributeHolder(self.model)


class SharedTemplate(tiny_models.OneModel, abc.ABC):
  """A template called twice: `a/w` exists once."""

  def model(self, inputs, training):
    template = v1.make_template('a', self.scaled)
    return template(template(inputs))

  def scaled(self, inputs, training=False):
    return inputs * v1.get_variable('w', [3])


class StorePerLayer(layers.Layer):
  """Two layers under the shim, which look a variable of one name up."""

  def __init__(self, forward, count):
    super().__init__(name='stores')
    made = [tiny_models.ShimLayer(forward) for _ in range(count)]
    self.first, self.second = made[0], made[-1]

  def call(self, inputs):
    return self.second(self.first(inputs))


class TwoStores(SharedTemplate):
  def make_tf2_layer(self):
    return StorePerLayer(self.in_scope, 2)

  def in_scope(self, inputs, training):
    with v1.variable_scope('a', reuse=v1.AUTO_REUSE):
      return self.scaled(inputs)


class OneStore(TwoStores):
  def make_tf2_layer(self):
    return StorePerLayer(self.in_scope, 1)


class SomeFrozen(tiny_models.OneModel, abc.ABC):
  """Two of the three scalars have one initial value, and one of these two is frozen."""

  def model(self, inputs, training):
    ones, halves = v1.ones_initializer(), v1.constant_initializer(0.5)
    scale = v1.get_variable('scale', [], initializer=ones, trainable=False)
    gain = v1.get_variable('gain', [], initializer=halves)
    return gain * inputs * scale + v1.get_variable('shift', [], initializer=ones)


class FilteringLayer(layers.Layer):
  def __init__(self):
    super().__init__(name='filtering')
    self.scale = tf.Variable(1.0, name='scale')
    self.gain = tf.Variable(0.5, name='gain')
    self.shift = tf.Variable(1.0, name='shift')

  def call(self, inputs):
    return self.gain * inputs * self.scale + self.shift

  @property
  def trainable_variables(self):
    frozen = [self.scale]
    return [variable for variable in self.variables if variable not in frozen]


class ReferenceFilteringLayer(FilteringLayer):
  @property
  def trainable_variables(self):
    frozen = {self.scale.ref()}
    return [variable for variable in self.variables if variable.ref() not in frozen]


class FilteredByValue(SomeFrozen):
  def make_tf2_layer(self):
    return FilteringLayer()


class FilteredByReference(SomeFrozen):
  def make_tf2_layer(self):
    return ReferenceFilteringLayer()


class Decayed(tiny_models.OneModel, abc.ABC):
  def model(self, inputs, training):
    weights = v1.get_variable('weights', [3, 3], regularizer=slim.l2_regularizer(0.1))
    return tf.matmul(inputs, weights)


class DecayedModule(Decayed):
  def make_tf2_layer(self):
    return tiny_models.ShimModule(self.model)


class DecayedLayer(Decayed):
  pass


PORT_BUGS = (
  PortBug(
    identifier='B06',
    title='shared weights become two sets',
    tf1='a siamese net: the second tower has `reuse=True`',
    mistake='two Keras layer objects, each with its own weights',
    stage=_STAGE,
    wrong=TwoTowers,
    right=OneTower,
    words=(
      'siamese/tower_2',
      'variables of siamese/tower a second time',
      'reuse',
      'one layer object',
    ),
  ),
  PortBug(
    identifier='B07',
    title='distinct weights become one set',
    tf1='`MultiRNNCell([cell() for _ in range(2)])`',
    mistake='`[cell] * 2`: one object, called twice',
    stage=_STAGE,
    wrong=OneCellTwice,
    right=TwoCells,
    words=('cell_1/gru_cell', 'in addition to cell_0', 'one object serves for both', '[layer] * n'),
  ),
  PortBug(
    identifier='B08',
    title='tied softmax lost',
    tf1='`tf.matmul(h, wte, transpose_b=True)` reads the embedding again',
    mistake='`Dense(vocabulary)` with its own kernel',
    stage=_STAGE,
    wrong=UntiedSoftmax,
    right=StillTiedSoftmax,
    words=('logits/kernel', 'transposed shape of wte', 'tie the weights'),
  ),
  PortBug(
    identifier='B09',
    title='variable held by a closure',
    tf1='global collections find every variable',
    mistake='a `Lambda` reads a variable that is in no attribute: not trained, not saved',
    stage=_STAGE,
    wrong=HeldByLambda,
    right=HeldByAttribute,
    words=('bias', 'untracked', 'sharing.py:', 'a closure, a Lambda', 'in an attribute'),
  ),
  PortBug(
    identifier='B17',
    title='a variable store per layer',
    tf1='`make_template`, or `get_variable` with the same name in two places: one variable',
    mistake='two layers under the shim, each with its own store: two variables',
    stage=_STAGE,
    wrong=TwoStores,
    right=OneStore,
    words=('a/w', '2 variables', 'a store of its own', 'pass the layer or the variable'),
  ),
  PortBug(
    identifier='B18',
    title='`in` compares values',
    tf1='`[v for v in variables if v not in frozen]`: by identity',
    mistake='the same line in TF2 compares values: an equal variable is lost as well',
    stage=_STAGE,
    wrong=FilteredByValue,
    right=FilteredByReference,
    words=('shift', '`in` compares values', '.ref()'),
  ),
  PortBug(
    identifier='B20',
    title='regularizer on a tf.Module',
    tf1='`get_variable(regularizer=...)` adds to REGULARIZATION_LOSSES',
    mistake='the shim on a `tf.Module`, which has no `losses`: no regularization',
    stage='zero_randomness',
    wrong=DecayedModule,
    right=DecayedLayer,
    words=('regularization loss weights', 'missing', 'tf.Module tracks no losses'),
  ),
)
