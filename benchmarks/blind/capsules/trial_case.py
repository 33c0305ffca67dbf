"""The case of the capsule network."""

import model
import numpy as np
import port

import tf2verify

NAMES = {
  'primary/conv/kernel': 'conv/kernel',
  'primary/conv/bias': 'conv/bias',
  'primary/capsules/kernel': 'primary/conv/kernel',
  'primary/capsules/bias': 'primary/conv/bias',
  'routing/bias': 'routing/bias',
  'decoder/fc1/kernel': 'decoder_0/kernel',
  'decoder/fc1/bias': 'decoder_0/bias',
  'decoder/fc2/kernel': 'decoder_1/kernel',
  'decoder/fc2/bias': 'decoder_1/bias',
  'image/kernel': 'reconstruction/kernel',
  'image/bias': 'reconstruction/bias',
}
ENTRIES = [
  tf2verify.MapEntry(
    ('capsnet/routing/weight',),
    ('routing/kernel',),
    '1 n (c d) i 1 -> c n d i',
    {'c': 5, 'd': 8},
  ),
  tf2verify.MapEntry(('capsnet/routing/bias',), ('routing/bias',), '1 1 c d -> c d'),
]
for old, new in NAMES.items():
  if old == 'routing/bias':
    continue
  layout = 'i o -> i o'
  if old.endswith('bias'):
    layout = 'o -> o'
  elif old.startswith('primary'):
    layout = 'h w i o -> h w i o'
  ENTRIES.append(tf2verify.MapEntry((f'capsnet/{old}',), (new,), layout))


def images():
  random = np.random.RandomState(11)
  return random.randint(0, 256, size=(5, 14, 14, 1)).astype(np.uint8)


LABELS = np.array([3, 0, -1, 4, 1], np.int32)


class CapsuleNetworkCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5
  variable_map = tf2verify.VariableMap(tuple(ENTRIES))

  def build_tf1_graph(self, inputs, training):
    return model.capsnet(inputs, training)

  def make_tf2_layer(self):
    return port.make_model()

  def make_inputs(self):
    return {'image': images(), 'label': LABELS}

  def make_labels(self):
    return {'image': images(), 'label': LABELS}

  def tf1_loss(self, outputs, labels):
    return model.capsnet_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.capsule_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
