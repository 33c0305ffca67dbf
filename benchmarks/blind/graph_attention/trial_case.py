"""Compares the graph network with its port."""

import model
import numpy as np
import port

import tf2verify


class GraphAttentionCase(tf2verify.EquivalenceCase):
  modes_to_run = ('tf.function',)  # the others take longer than all the rest

  def build_tf1_graph(self, inputs, training):
    return model.graph_network(inputs, training)

  def make_tf2_layer(self):
    return port.GraphNetwork()

  def make_inputs(self):
    random = np.random.RandomState(7)
    adjacency = (random.uniform(size=(3, 6, 6)) < 0.4).astype(np.float32)
    mask = np.ones((3, 6), np.float32)
    mask[1, 4:] = 0.0
    mask[2, 5:] = 0.0
    return {
      'nodes': tf2verify.normal_inputs((3, 6, 5), seed=8),
      'adjacency': adjacency,
      'mask': mask,
    }

  def fill_values(self, name, shape, dtype):
    values = tf2verify.distinct_values(name, shape, dtype)
    divisor = name.endswith('average_degree')
    return np.asarray(1 + np.abs(values), values.dtype) if divisor else values

  def make_labels(self):
    random = np.random.RandomState(9)
    mask = np.zeros((3, 6), np.float32)
    mask[:, :3] = 1.0
    return {
      'nodes': random.randint(0, 3, (3, 6)).astype(np.int32),
      'train_mask': mask,
      'graph': random.randint(0, 2, (3, 4)).astype(np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()
