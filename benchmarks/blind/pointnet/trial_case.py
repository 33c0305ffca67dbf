"""The case of PointNet."""

import model
import numpy as np
import port

import tf2verify

NORM = {
  'bn/beta': 'norm/beta',
  'bn/gamma': 'norm/gamma',
  'bn/moving_mean': 'norm/mean',
  'bn/moving_variance': 'norm/variance',
}
CONV = '1 x i o -> (x i) o'
BLOCKS = {
  'transform1/tconv1': ('align_points/shared_0', CONV),
  'transform1/tconv2': ('align_points/shared_1', CONV),
  'transform1/tfc1': ('align_points/fc', 'i o -> i o'),
  'conv1': ('embed_0', CONV),
  'conv2': ('embed_1', CONV),
  'transform2/tconv1': ('align_features/shared_0', CONV),
  'transform2/tconv2': ('align_features/shared_1', CONV),
  'transform2/tfc1': ('align_features/fc', 'i o -> i o'),
  'conv3': ('encode_0', CONV),
  'conv4': ('encode_1', CONV),
  'cls/fc1': ('category_hidden', 'i o -> i o'),
  'seg/conv1': ('parts_hidden_0', CONV),
  'seg/conv2': ('parts_hidden_1', CONV),
}
DENSE = {
  'transform1/transform': ('align_points/matrix', 'i o -> i o'),
  'transform2/transform': ('align_features/matrix', 'i o -> i o'),
  'cls/fc2': ('category_logits', 'i o -> i o'),
  'seg/conv3': ('parts_logits', CONV),
}


def entry(old, new, layout):
  sizes = {'x': 3} if old in ('pointnet/transform1/tconv1/weights', 'pointnet/conv1/weights') else {}
  return tf2verify.MapEntry((old,), (new,), layout, sizes)


def variable_map():
  entries = [tf2verify.MapEntry(('global_step',), ('point_net/step',), '[] -> []')]
  for old, (new, layout) in BLOCKS.items():
    entries.append(entry(f'pointnet/{old}/weights', f'point_net/{new}/dense/kernel', layout))
    for one, other in NORM.items():
      entries.append(entry(f'pointnet/{old}/{one}', f'point_net/{new}/{other}', 'o -> o'))
  for old, (new, layout) in DENSE.items():
    entries.append(entry(f'pointnet/{old}/weights', f'point_net/{new}/kernel', layout))
    entries.append(entry(f'pointnet/{old}/biases', f'point_net/{new}/bias', 'o -> o'))
  return tf2verify.VariableMap(tuple(entries))


def clouds():
  points = np.random.RandomState(5).normal(size=(8, 20, 3)).astype(np.float32)
  return points / np.max(np.linalg.norm(points, axis=2), axis=1)[:, None, None]


def parts():
  labels = np.random.RandomState(6).randint(0, 6, size=(8, 20)).astype(np.int32)
  labels[0, 15:] = -1
  labels[2, ::2] = -1
  labels[5, 3:] = -1
  return labels


CATEGORIES = np.array([2, 0, 3, 1, 1, 2, 0, 0], np.int32)


class PointNetCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 6
  variable_map = variable_map()

  def build_tf1_graph(self, inputs, training):
    return model.pointnet(inputs, training)

  def make_tf2_layer(self):
    return port.PointNet()

  def make_inputs(self):
    return {'points': clouds(), 'category': CATEGORIES}

  def make_labels(self):
    return {'category': CATEGORIES, 'parts': parts()}

  def tf1_loss(self, outputs, labels):
    return model.get_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.pointnet_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.get_train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
