"""What the builder returns, and what it does to the process."""

from tests import small_case
from tests.bad_cases.mistake import error, failed
from tests.small_case import SmallCase

# isort: split
import tensorflow as tf
from tensorflow.compat.v1 import disable_eager_execution, disable_v2_behavior

v1 = tf.compat.v1


class BuilderReturnsNone(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'build_tf1_graph returned None: usually a missing `return`; return the output tensors',
  )

  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)


class BuilderReturnsText(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    "build_tf1_graph returned {'logits': 'logits'}, which contains no tensor: ",
    ' return the output',
  )

  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)
    return {'logits': 'logits'}


class BuilderReturnsObject(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    "something that is not a tensor: ['scope'] is of type VariableScope; return tensors",
  )

  def build_tf1_graph(self, inputs, training):
    return {'logits': small_case.model(inputs, training), 'scope': v1.get_variable_scope()}


class BuilderReturnsEmpty(SmallCase):
  mistake = error(
    'variable_inventory', 'tf1', 'build_tf1_graph returned {}, which contains no tensor'
  )

  def build_tf1_graph(self, inputs, training):
    small_case.model(inputs, training)
    return {}


class StructuresDiffer(SmallCase):
  mistake = failed(
    'zero_randomness',
    'the whole nest',
    'structure differs',
    "tf1: (Tensor, {'logits': Tensor})",
    'tf2: Tensor ',
    'override call_tf2_layer',
  )

  def build_tf1_graph(self, inputs, training):
    outputs = small_case.model(inputs, training)
    return outputs, {'logits': outputs}


class BuilderDisablesV2(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'turned eager execution off (disable_v2_behavior() or disable_eager_execution())',
    'remove the call',
  )

  def build_tf1_graph(self, inputs, training):
    v1.disable_v2_behavior()
    return small_case.model(inputs, training)


class BuilderDisablesV2ByName(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'turned eager execution off (disable_v2_behavior() or disable_eager_execution())',
    'remove the call',
  )

  def build_tf1_graph(self, inputs, training):
    disable_v2_behavior()
    return small_case.model(inputs, training)


class BuilderDisablesEager(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'turned eager execution off (disable_v2_behavior() or disable_eager_execution())',
    'remove the call',
  )

  def build_tf1_graph(self, inputs, training):
    v1.disable_eager_execution()
    return small_case.model(inputs, training)


class BuilderDisablesEagerByName(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'turned eager execution off (disable_v2_behavior() or disable_eager_execution())',
    'remove the call',
  )

  def build_tf1_graph(self, inputs, training):
    disable_eager_execution()
    return small_case.model(inputs, training)


class BuilderMakesGraph(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'returned (the output) from a different graph from ',
    '`with tf.Graph().as_default():` inside the builder; remove it',
  )

  def build_tf1_graph(self, inputs, training):
    del inputs
    with tf.Graph().as_default():
      return small_case.model(v1.placeholder(tf.float32, (4, 3)), training)


class BuilderMixesGraphs(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'ValueError: ',
    ' must be from the same graph ',
    '; maybe since it makes a different graph from ',
    'remove it',
  )

  def build_tf1_graph(self, inputs, training):
    with tf.Graph().as_default():
      return small_case.model(inputs, training)


class BuilderResetsGraph(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'called reset_default_graph(), as clear_session() does',
    'gives every call a fresh graph',
    'remove the call',
  )

  def build_tf1_graph(self, inputs, training):
    v1.reset_default_graph()
    return small_case.model(inputs, training)


class BuilderOpensSession(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    'opened a session: tf2verify runs the graph itself',
    'leave sessions, initializers and savers out',
  )

  def build_tf1_graph(self, inputs, training):
    outputs = small_case.model(inputs, training)
    with v1.Session() as session:
      session.run(v1.global_variables_initializer())
    return outputs


class BuilderOpensInteractiveSession(SmallCase):
  mistake = error('variable_inventory', 'tf1', 'opened a session: tf2verify runs the graph itself')

  def build_tf1_graph(self, inputs, training):
    v1.InteractiveSession()
    return small_case.model(inputs, training)


class BuilderUsesContrib(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    "module 'tensorflow' has no attribute 'contrib'; tf.contrib is gone ",
    '`import tf_slim as slim`',
  )

  def build_tf1_graph(self, inputs, training):
    return tf.contrib.layers.fully_connected(inputs, 2)


class BuilderImportsContrib(SmallCase):
  mistake = error(
    'variable_inventory',
    'tf1',
    "No module named 'tensorflow.contrib'; tf.contrib is gone ",
    '`import tf_slim as slim`',
  )

  def build_tf1_graph(self, inputs, training):
    import tensorflow.contrib.slim as slim

    return slim.fully_connected(inputs, 2)
