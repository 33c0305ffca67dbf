import numpy as np

import model
import port
import tf2verify


class ReidCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def variable_names(self, name):
    parts = name.split('/')[1:]
    weight = {'weights': 'kernel', 'biases': 'bias'}.get(parts[-1], parts[-1])
    layer = '_'.join(parts[:-1]).replace('_BatchNorm', '_norm')
    return f'{layer}/{weight}'

  def build_tf1_graph(self, inputs, training):
    return model.reid(inputs, 4, is_training=training)

  def make_tf2_layer(self):
    return port.reid(4)

  def make_inputs(self):
    return tf2verify.normal_inputs((8, 16, 8, 3))

  def make_labels(self):
    return np.array([0, 0, 1, 1, 2, 2, 3, 3], np.int32)

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.Trainer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return optimizer.step(layer, inputs, labels)
