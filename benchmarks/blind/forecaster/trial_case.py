"""The case of the forecaster."""

import model
import numpy as np
import port

import tf2verify

T1 = 'forecaster/'
T2 = 'sales_forecaster/'

VARIABLES = {
  'static/store_embedding': 'store/embeddings',
  'static/item_embedding': 'product/embeddings',
  'static/mix/kernel': 'profile/kernel',
  'static/mix/bias': 'profile/bias',
  'encoder/norm/gamma': 'encoder/norm/gamma',
  'encoder/norm/beta': 'encoder/norm/beta',
  'encoder/bridge/kernel': 'encoder/bridge/kernel',
  'encoder/bridge/bias': 'encoder/bridge/bias',
  'decoder/attention': 'decoder/score',
  'decoder/w_out': 'decoder/head/kernel',
  'decoder/b_out': 'decoder/head/bias',
}
for old, new in (('fw', 'ahead'), ('bw', 'back')):
  for old_name, new_name in (
    ('kernel', 'kernel'),
    ('bias', 'bias'),
    ('w_f_diag', 'peep_forget'),
    ('w_i_diag', 'peep_input'),
    ('w_o_diag', 'peep_output'),
  ):
    cell = f'encoder/bidirectional_rnn/{old}/lstm_cell/'
    VARIABLES[cell + old_name] = f'encoder/{new}/cell/{new_name}'
for i in range(2):
  for old, new in (
    ('w_h', 'signal'),
    ('b_h', 'signal_bias'),
    ('w_t', 'transform'),
    ('b_t', 'transform_bias'),
  ):
    VARIABLES[f'decoder/highway_{i}/{old}'] = f'decoder/cell/{new}_{i}'


class ForecasterCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5
  variable_map = tf2verify.VariableMap.of_names({T1 + k: T2 + v for k, v in VARIABLES.items()})

  def build_tf1_graph(self, inputs, training):
    return model.forecaster(inputs, training)

  def make_tf2_layer(self):
    return port.SalesForecaster()

  def make_inputs(self):
    random = np.random.RandomState(19)
    lengths = np.array([8, 3, 6, 5], np.int32)
    present = np.arange(8) < lengths[:, None]
    first = np.array([2, 6, 0, 4])[:, None]
    counts = random.poisson([[3.0], [25.0], [0.8], [9.0]], size=(4, 8)) * present
    return {
      'counts': counts.astype(np.float32),
      'lengths': lengths,
      'days': ((first + np.arange(8)) % 7 * present).astype(np.int32),
      'price': (random.uniform(0.5, 1.5, size=(4, 8)) * present).astype(np.float32),
      'future_days': ((first + lengths[:, None] + np.arange(5)) % 7).astype(np.int32),
      'future_price': random.uniform(0.5, 1.5, size=(4, 5)).astype(np.float32),
      'store': np.array([1, 4, 0, 1], np.int32),
      'item': np.array([17, 3, 22, 8], np.int32),
      'attributes': random.normal(size=(4, 3)).astype(np.float32),
    }

  def make_labels(self):
    random = np.random.RandomState(3)
    counts = random.poisson([[3.0], [25.0], [0.8], [9.0]], size=(4, 5))
    in_stock = np.ones((4, 5), bool)
    in_stock[1, 3:] = False
    in_stock[2, 0] = False
    clearance = np.zeros((4, 5), bool)
    clearance[0, 2:] = True
    clearance[3, 4] = True
    return {
      'counts': counts.astype(np.float32),
      'in_stock': in_stock,
      'clearance': clearance,
    }

  def tf1_loss(self, outputs, labels):
    return model.forecaster_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.forecaster_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss)

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
