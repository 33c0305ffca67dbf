"""The case of the session-based recommender."""

import model
import numpy as np
import port

import tf2verify

VARIABLES = {
  'sessions/item_embedding': 'session_recommender/catalogue/embeddings',
  'sessions/rnn/gru_cell/gates/kernel': 'session_recommender/encoder/cell/gates',
  'sessions/rnn/gru_cell/gates/bias': 'session_recommender/encoder/cell/gates_bias',
  'sessions/rnn/gru_cell/candidate/kernel': 'session_recommender/encoder/cell/proposal',
  'sessions/rnn/gru_cell/candidate/bias': 'session_recommender/encoder/cell/proposal_bias',
  'sessions/attention/keys/kernel': 'session_recommender/attention/key/kernel',
  'sessions/attention/query/kernel': 'session_recommender/attention/query/kernel',
  'sessions/attention/query/bias': 'session_recommender/attention/query/bias',
  'sessions/attention/v': 'session_recommender/attention/energy',
  'sessions/bilinear/kernel': 'session_recommender/project/kernel',
  'sessions/item_bias': 'session_recommender/popularity',
}


class SessionsCase(tf2verify.EquivalenceCase):
  training_steps_to_take = 5
  variable_map = tf2verify.VariableMap.of_names(VARIABLES)

  def build_tf1_graph(self, inputs, training):
    return model.recommender(inputs, training)

  def make_tf2_layer(self):
    return port.SessionRecommender()

  def make_inputs(self):
    random = np.random.RandomState(5)
    lengths = np.array([7, 3, 5, 1, 6, 4])
    present = np.arange(7) < lengths[:, None]
    items = random.randint(1, 30, size=(6, 7)) * present
    dwell = random.uniform(2.0, 240.0, size=(6, 7)) * present
    return {'items': items.astype(np.int32), 'dwell': dwell.astype(np.float32)}

  def make_labels(self):
    return {
      'targets': np.array([4, 17, 0, 29, 8, 11], np.int32),  # 0: a session without a target
      'negatives': np.array(
        [
          [3, 9, 21, 14],
          [17, 2, 6, 25],  # the first one is the target
          [1, 5, 7, 13],
          [10, 12, 28, 4],
          [22, 16, 8, 19],
          [20, 18, 23, 26],
        ],
        np.int32,
      ),
      'weights': np.array([1.0, 0.5, 1.0, 2.0, 0.75, 1.5], np.float32),
    }

  def tf1_loss(self, outputs, labels):
    return model.session_loss(outputs, labels)

  def tf2_loss(self, outputs, labels):
    return port.session_loss(outputs, labels)

  def make_tf1_train_op(self, loss):
    return model.train_op(loss['loss'])

  def make_tf2_optimizer(self):
    return port.make_optimizer()

  def tf2_train_step(self, layer, inputs, labels, optimizer):
    return port.train_step(layer, inputs, labels, optimizer)
