"""The classifier rewritten in Keras, with names of its own, and two loaders that do not load."""

import tensorflow as tf

TF2_NAMES = {
  'classifier/conv1/kernel': 'bars/stem/kernel',
  'classifier/bn1/gamma': 'bars/norm/gamma',
  'classifier/bn1/beta': 'bars/norm/beta',
  'classifier/bn1/moving_mean': 'bars/norm/moving_mean',
  'classifier/bn1/moving_variance': 'bars/norm/moving_variance',
  'classifier/fc/kernel': 'bars/head/kernel',
  'classifier/fc/bias': 'bars/head/bias',
}


class Bars(tf.keras.Model):
  """The classifier."""

  def __init__(self) -> None:
    super().__init__(name='bars')
    self.stem = tf.keras.layers.Conv2D(8, 3, padding='same', use_bias=False, name='stem')
    self.norm = tf.keras.layers.BatchNormalization(name='norm')
    self.pool = tf.keras.layers.MaxPooling2D(2)
    self.flatten = tf.keras.layers.Flatten()
    self.head = tf.keras.layers.Dense(4, name='head')

  def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
    """Returns the logits, `[batch, 4]`."""
    net = self.pool(tf.nn.relu(self.norm(self.stem(images), training=training)))
    return self.head(self.flatten(net))


def restore_by_object(net: Bars, path: str) -> None:
  """Restores nothing: `Checkpoint` looks for the port's names, of which the file has none.

  TensorFlow says nothing unless the status that `restore` returns is asked.
  """
  tf.train.Checkpoint(model=net).restore(path)


def load_what_is_found(net: Bars, path: str) -> None:
  """Loads by the scope of each layer in TF1; the kernel and bias of the head stay as they were.

  The scope of the head was `fc`, and a key that is not there is passed over.
  """
  scopes = {'stem': 'conv1', 'norm': 'bn1', 'head': 'logits'}
  checkpoint = tf.train.load_checkpoint(path)
  for variable in net.variables:
    _, layer, name = variable.name.removesuffix(':0').split('/')
    key = f'classifier/{scopes[layer]}/{name}'
    if checkpoint.has_tensor(key):
      variable.assign(checkpoint.get_tensor(key))
