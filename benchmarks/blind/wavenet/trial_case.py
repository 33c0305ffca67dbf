"""The case of the WaveNet."""

import model
import numpy as np
import port

import tf2verify


class WaveNetCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5

  def build_tf1_graph(self, inputs, training):
    return model.wavenet(inputs, training)

  def make_tf2_layer(self):
    return port.WaveNet()

  def audio(self):
    random = np.random.RandomState(23)
    time = np.arange(25) / 25.0
    waves = [np.sin(2 * np.pi * f * time) for f in (1.5, 4.0)]
    return 0.6 * np.array(waves) + random.uniform(-0.3, 0.3, size=(2, 25))

  def make_inputs(self):
    random = np.random.RandomState(7)
    return {
      'audio': self.audio()[:, :-1].astype(np.float32),
      'speaker': np.array([2, 0], np.int32),
      'mel': random.normal(size=(2, 6, 3)).astype(np.float32),
    }

  def make_labels(self):
    return {
      'audio': self.audio()[:, 1:].astype(np.float32),
      'lengths': np.array([24, 19], np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.wavenet_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.wavenet_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
