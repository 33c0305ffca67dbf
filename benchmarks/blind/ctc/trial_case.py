"""The case of the speech recognizer."""

import model
import numpy as np
import port

import tf2verify

T1 = 'recognizer/'
T2 = 'recognizer/'

VARIABLES = {'logits/kernel': 'head/kernel', 'logits/bias': 'head/bias'}
for i in range(2):
  VARIABLES[f'conv_{i}/conv/kernel'] = f'block_{i}/conv/kernel'
  for old_name, new_name in (
    ('gamma', 'gamma'),
    ('beta', 'beta'),
    ('moving_mean', 'mean'),
    ('moving_variance', 'variance'),
  ):
    VARIABLES[f'conv_{i}/bn/{old_name}'] = f'block_{i}/norm/{new_name}'
for old, new in (('fw', 'ahead'), ('bw', 'back')):
  for old_name, new_name in (
    ('kernel', 'kernel'),
    ('bias', 'bias'),
    ('projection/kernel', 'projection'),
  ):
    cell = f'rnn/bidirectional_rnn/{old}/lstm_cell/'
    VARIABLES[cell + old_name] = f'recurrent/{new}/cell/{new_name}'


class RecognizerCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5
  variable_names = {T1 + k: T2 + v for k, v in VARIABLES.items()}

  def build_tf1_graph(self, inputs, training):
    return model.recognizer(inputs, training)

  def make_tf2_layer(self):
    return port.Recognizer()

  def make_inputs(self):
    random = np.random.RandomState(37)
    return {
      'features': (2.0 * random.normal(size=(4, 26, 9)) + 1.0).astype(np.float32),
      'lengths': np.array([26, 21, 17, 23], np.int32),
    }

  def make_labels(self):
    return {
      'symbols': np.array(
        [[2, 5, 5, 0, 1], [3, 0, 4, 0, 0], [1, 1, 2, 0, 0], [4, 2, 0, 3, 0]], np.int32
      ),
      'lengths': np.array([5, 3, 3, 4], np.int32),
    }

  def tf1_loss(self, outputs, labels):
    return model.recognizer_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.recognizer_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
