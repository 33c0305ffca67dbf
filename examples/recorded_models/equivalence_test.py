"""Models recorded under TensorFlow 1.15.5 against their ports."""

import tf2verify
from examples.recorded_models.ports import (
  attention,
  bag_of_words,
  gru,
  layers_conv_net,
  lstm,
  slim_conv_net,
)


class SlimConvNetCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/slim_conv_net'

  def make_tf2_layer(self):
    return slim_conv_net.ConvNet()

  def tf2_loss(self, outputs, labels):
    return slim_conv_net.loss(outputs, labels)

  def make_tf2_optimizer(self):
    return slim_conv_net.optimizer()


class LayersConvNetCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/layers_conv_net'

  def make_tf2_layer(self):
    return layers_conv_net.ConvNet()

  def tf2_loss(self, outputs, labels):
    return layers_conv_net.loss(outputs, labels)

  def make_tf2_optimizer(self):
    return layers_conv_net.optimizer()


class LstmCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/lstm'
  training_steps_to_take = 2

  def make_tf2_layer(self):
    return lstm.SequenceClassifier()

  def tf2_loss(self, outputs, labels):
    return lstm.loss(outputs, labels)

  def make_tf2_optimizer(self):
    return lstm.optimizer()


class GruCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/gru'

  def make_tf2_layer(self):
    return gru.Encoder()


class AttentionCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/attention'

  def make_tf2_layer(self):
    return attention.Block()


class BagOfWordsCase(tf2verify.EquivalenceCase):
  tf1_recording = 'recordings/bag_of_words'
  training_steps_to_take = 2

  def make_tf2_layer(self):
    return bag_of_words.BagOfWords()

  def tf2_loss(self, outputs, labels):
    return bag_of_words.loss(outputs, labels)

  def make_tf2_optimizer(self):
    return bag_of_words.optimizer()


if __name__ == '__main__':
  tf2verify.main()
