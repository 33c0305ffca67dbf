"""Compares the ranker with its port."""

import model
import numpy as np
import port

import tf2verify


class PairRankerCase(tf2verify.EquivalenceCase):
  modes_to_run = ('tf.function',)  # the others take longer than all the rest

  def variable_names(self, name):
    for variable in ('trigrams', 'term_weight'):
      name = name.replace(f'pair_ranker/{variable}', f'pair_ranker/bag/{variable}')
    for variable in ('gamma', 'examination'):
      name = name.replace(f'pair_ranker/{variable}', variable)
    return name

  def build_tf1_graph(self, inputs, training):
    return model.ranker(inputs, training)

  def make_tf2_layer(self):
    return port.PairRanker()

  def make_inputs(self):
    random = np.random.RandomState(3)
    query = random.randint(1, model.VOCABULARY, (4, 5)).astype(np.int32)
    query[0, 3:] = 0
    query[2, 1:] = 0
    title = random.randint(1, model.VOCABULARY, (4, 6, 7)).astype(np.int32)
    title[:, ::2, 4:] = 0
    title[1, 4:] = 0  # two documents are padding
    positions = np.stack([random.permutation(6) for _ in range(4)]).astype(np.int32)
    features = tf2verify.normal_inputs((4, 6, 3), seed=5)
    return {'query': query, 'title': title, 'features': features, 'positions': positions}

  def make_labels(self):
    grades = np.random.RandomState(4).randint(0, 4, (4, 6)).astype(np.int32)
    grades[1, 4:] = -1
    grades[3] = 0  # nothing relevant
    return {'grades': grades, 'weight': np.array([1.0, 0.5, 2.0, 1.0], np.float32)}

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
