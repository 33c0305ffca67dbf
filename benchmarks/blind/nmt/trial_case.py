"""The case of the translation model."""

import model
import numpy as np
import port

import tf2verify

SOURCE_LENGTHS = np.array([6, 3, 5, 1], np.int32)
TARGET_LENGTHS = np.array([5, 4, 2, 5], np.int32)


def sentences(seed, vocab, lengths):
  ids = np.random.RandomState(seed).randint(3, vocab, (len(lengths), lengths.max()))
  ids[np.arange(len(lengths)), lengths - 1] = model.END
  ids[np.arange(lengths.max()) >= lengths[:, None]] = 0
  return ids.astype(np.int32)


def source():
  return sentences(1, model.SOURCE_VOCAB, SOURCE_LENGTHS)


def target():
  return sentences(2, model.TARGET_VOCAB, TARGET_LENGTHS)


class NmtCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.translate(inputs, training)

  def make_tf2_layer(self):
    return port.Translator()

  def make_inputs(self):
    return {
      'source': source(),
      'source_lengths': SOURCE_LENGTHS,
      'target': target(),
      'target_lengths': TARGET_LENGTHS,
    }

  def make_labels(self):
    return {
      'target': target(),
      'target_lengths': TARGET_LENGTHS,
      'source_lengths': SOURCE_LENGTHS,
    }

  def tf1_loss(self, outputs, labels):
    return model.nmt_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.nmt_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
