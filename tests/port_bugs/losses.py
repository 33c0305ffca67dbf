"""Mistakes in the loss, seen from the outputs on."""

import numpy as np
import tensorflow as tf

import tf2verify
from tests.port_bugs.port_bug import PortBug
from tests.stages import tiny_models
from tests.stages.tiny_models import bias, kernel

v1 = tf.compat.v1
keras = tf.keras
_LOSS = 'loss'


class Classified(tiny_models.Affine):
  """Three classes, four examples, the logits as output."""

  def make_labels(self):
    return {'classes': np.array([0, 2, 1, 2], np.int32)}

  def one_hot(self, labels):
    return tf.one_hot(labels['classes'], 3)

  def tf1_loss(self, outputs, labels):
    return v1.losses.softmax_cross_entropy(self.one_hot(labels), outputs)

  def tf2_loss(self, outputs, labels):
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    return loss(self.one_hot(labels), outputs)


class ClassifiedBySoftmax(Classified):
  def tf2_loss(self, outputs, labels):
    loss = keras.losses.CategoricalCrossentropy()
    return loss(self.one_hot(labels), tf.nn.softmax(outputs))


class ClassifiedByLogitsAsProbabilities(Classified):
  def tf2_loss(self, outputs, labels):
    return keras.losses.CategoricalCrossentropy()(self.one_hot(labels), outputs)


class Weighted(Classified):
  """None of the weights is zero, so that both ways divide by the same number."""

  def make_labels(self):
    weights = np.array([1.0, 0.5, 2.0, 1.5], np.float32)
    return {**super().make_labels(), 'weights': weights}

  def tf1_loss(self, outputs, labels):
    weights = labels['weights']
    return v1.losses.softmax_cross_entropy(self.one_hot(labels), outputs, weights)

  def tf2_loss(self, outputs, labels):
    weights = labels['weights']
    losses = tf.nn.softmax_cross_entropy_with_logits(self.one_hot(labels), outputs)
    present = tf.cast(tf.math.count_nonzero(weights), tf.float32)
    return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), present)


class WeightedByKeras(Weighted):
  def tf2_loss(self, outputs, labels):
    loss = keras.losses.CategoricalCrossentropy(from_logits=True)
    return loss(self.one_hot(labels), outputs, labels['weights'])


class PerExample(Classified):
  """A loss per example, which a TF1 optimizer adds up."""

  reduction = keras.losses.Reduction.SUM

  def tf1_loss(self, outputs, labels):
    return v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['classes'], logits=outputs)

  def tf2_loss(self, outputs, labels):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction=self.reduction)
    return loss(labels['classes'], outputs)


class PerExampleAveraged(PerExample):
  reduction = keras.losses.Reduction.SUM_OVER_BATCH_SIZE


class Smoothed(Classified):
  def tf1_loss(self, outputs, labels):
    return v1.losses.softmax_cross_entropy(self.one_hot(labels), outputs, label_smoothing=0.1)

  def tf2_loss(self, outputs, labels):
    loss = keras.losses.CategoricalCrossentropy(from_logits=True, label_smoothing=0.1)
    return loss(self.one_hot(labels), outputs)


class SmoothedNoMore(Smoothed):
  def tf2_loss(self, outputs, labels):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return loss(labels['classes'], outputs)


class Binary(tiny_models.OneModel):
  """Probabilities of three independent labels."""

  def model(self, inputs, training):
    return tf.sigmoid(inputs @ kernel() + bias())

  def make_labels(self):
    return np.eye(3, dtype=np.float32)[[0, 2, 1, 1]]

  def tf1_loss(self, outputs, labels):
    return v1.losses.log_loss(labels, outputs)

  def tf2_loss(self, outputs, labels):
    yes, no = (tf.math.log(p + 1e-7) for p in (outputs, 1.0 - outputs))
    return -tf.reduce_mean(labels * yes + (1.0 - labels) * no)


class BinaryByKeras(Binary):
  def tf2_loss(self, outputs, labels):
    return keras.losses.BinaryCrossentropy()(labels, outputs)


class Directed(tiny_models.Affine):
  """Vectors near to given directions."""

  def make_labels(self):
    vectors = tf2verify.normal_inputs((4, 3), seed=1)
    return vectors / np.linalg.norm(vectors, axis=-1, keepdims=True)

  def tf1_loss(self, outputs, labels):
    return v1.losses.cosine_distance(labels, outputs, axis=1)

  def tf2_loss(self, outputs, labels):
    return tf.reduce_mean(1.0 - tf.reduce_sum(labels * outputs, -1))


class DirectedByKeras(Directed):
  def tf2_loss(self, outputs, labels):
    return keras.losses.CosineSimilarity()(labels, outputs)


class Transcribed(tiny_models.OneModel):
  """Sequences of two symbols, the last of four classes left for the blank."""

  blank_index = -1

  def model(self, inputs, training):
    return tf.tensordot(inputs, v1.get_variable('kernel', [3, 4]), 1)

  def make_inputs(self):
    return tf2verify.normal_inputs((2, 5, 3))

  def make_labels(self):
    return np.array([[1, 2], [2, 1]], np.int32)

  def tf1_loss(self, outputs, labels):
    sparse = tf.sparse.from_dense(labels)
    return v1.nn.ctc_loss(sparse, outputs, [5, 5], time_major=False)

  def tf2_loss(self, outputs, labels):
    lengths = {'label_length': [2, 2], 'logit_length': [5, 5]}
    return tf.nn.ctc_loss(
      labels, outputs, **lengths, logits_time_major=False, blank_index=self.blank_index
    )


class TranscribedWithFirstBlank(Transcribed):
  blank_index = 0


class Decayed(tiny_models.Regularized):
  """A squared error, and the weight decay of the model."""

  def make_labels(self):
    return tf2verify.normal_inputs((4, 3), seed=1)

  def tf1_loss(self, outputs, labels):
    return v1.losses.mean_squared_error(labels, outputs)

  def tf2_loss(self, outputs, labels):
    return keras.losses.MeanSquaredError()(labels, outputs)


class DecayedInVain(Decayed):
  def tf2_total_loss(self, layer, outputs, labels):
    return self.tf2_loss(outputs, labels)


class Collected(Classified):
  """Losses that are collected before they are added up."""

  def tf1_loss(self, outputs, labels):
    loss = super().tf1_loss(outputs, labels)
    v1.add_to_collection('all_losses', loss)
    return tf.add_n(v1.get_collection('all_losses'))

  def tf2_loss(self, outputs, labels):
    all_losses = [super().tf2_loss(outputs, labels)]
    return tf.add_n(all_losses)


class CollectedForEver(Collected):
  all_losses = []  # as at the top of a TF1 module

  def tf2_loss(self, outputs, labels):
    self.all_losses.append(Classified.tf2_loss(self, outputs, labels))
    return tf.add_n(self.all_losses)


class Sequences(tiny_models.OneModel):
  """Words of sentences of different lengths; the loss is that of tf.contrib.seq2seq."""

  def model(self, inputs, training):
    return tf.tensordot(inputs, v1.get_variable('kernel', [3, 5]), 1)

  def make_inputs(self):
    return tf2verify.normal_inputs((3, 4, 3))

  def make_labels(self):
    weights = np.arange(4) < np.array([[4], [2], [3]])
    words = np.array([[1, 2, 3, 4], [2, 4, 0, 0], [3, 1, 2, 0]], np.int32)
    return {'words': words, 'weights': weights.astype(np.float32)}

  def tf1_loss(self, outputs, labels):
    losses = v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels['words'], logits=outputs)
    weights = labels['weights']
    return v1.div_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))

  def tf2_loss(self, outputs, labels):
    losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels['words'], outputs)
    weights = labels['weights']
    return tf.math.divide_no_nan(tf.reduce_sum(losses * weights), tf.reduce_sum(weights))


class SequencesByKeras(Sequences):
  def tf2_loss(self, outputs, labels):
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return loss(labels['words'], outputs, labels['weights'])


class Measured(tiny_models.OneModel):
  """The area under the precision-recall curve."""

  def model(self, inputs, training):
    return tf.sigmoid(inputs @ kernel() + bias())[:, 0]

  def make_inputs(self):
    return tf2verify.normal_inputs((32, 3))

  def make_labels(self):
    return (tf2verify.normal_inputs((32,), seed=1) > 0).astype(np.float32)

  def tf1_metrics(self, outputs, labels):
    return {'auc': v1.metrics.auc(labels, outputs, curve='PR')}

  def tf2_metrics(self, outputs, labels):
    metric = self.updated(outputs, labels)
    hits = metric.true_positives + 1e-6
    recall = hits / (metric.true_positives + metric.false_negatives + 1e-6)
    precision = hits / (metric.true_positives + metric.false_positives + 1e-6)
    heights = (precision[:-1] + precision[1:]) / 2.0
    return {'auc': tf.reduce_sum((recall[:-1] - recall[1:]) * heights)}

  def updated(self, outputs, labels):
    metric = keras.metrics.AUC(curve='PR')
    metric.update_state(labels, outputs)
    return metric


class MeasuredByKeras(Measured):
  def tf2_metrics(self, outputs, labels):
    return {'auc': self.updated(outputs, labels)}


PORT_BUGS = (
  PortBug(
    'B49',
    'cross-entropy of a softmax',
    tf1='softmax_cross_entropy takes the logits',
    mistake='CategoricalCrossentropy() on softmax(logits)',
    stage=_LOSS,
    wrong=ClassifiedBySoftmax,
    right=Classified,
    words=('saturates at 16.118', 'gradient is zero', 'from_logits=True'),
  ),
  PortBug(
    'B50',
    'logits taken as probabilities',
    tf1='softmax_cross_entropy takes the logits',
    mistake='CategoricalCrossentropy() takes probabilities unless from_logits=True is given',
    stage=_LOSS,
    wrong=ClassifiedByLogitsAsProbabilities,
    right=Classified,
    words=('treats logits as probabilities', 'do not sum to 1', 'from_logits=True'),
  ),
  PortBug(
    'B51',
    'mean of weighted losses',
    tf1='tf.losses divides by the number of weights that are not zero',
    mistake='Keras divides by the batch size',
    stage=_LOSS,
    wrong=WeightedByKeras,
    right=Weighted,
    words=('the number of weights that are not zero in tf1', 'the batch size in tf2'),
  ),
  PortBug(
    'B52',
    'sum or mean over the batch',
    tf1='a loss per example passed to minimize is summed',
    mistake='the mean of Keras',
    stage=_LOSS,
    wrong=PerExampleAveraged,
    right=PerExample,
    words=('divided by nothing (a sum) in tf1', 'the batch size in tf2', '0.25 times'),
  ),
  PortBug(
    'B53',
    'label smoothing',
    tf1='softmax_cross_entropy(label_smoothing=0.1)',
    mistake='SparseCategoricalCrossentropy, which has no such argument',
    stage=_LOSS,
    wrong=SmoothedNoMore,
    right=Smoothed,
    words=('smoothing term', 'tf1 smooths its labels by 0.1'),
  ),
  PortBug(
    'B54',
    'epsilon of the logarithm',
    tf1='log_loss takes log(p + 1e-7)',
    mistake='BinaryCrossentropy clips p, then adds its epsilon',
    stage=_LOSS,
    wrong=BinaryByKeras,
    right=Binary,
    words=('only saturated elements differ', 'placement of the epsilon'),
  ),
  PortBug(
    'B55',
    'cosine distance',
    tf1='cosine_distance is 1 - sum(a·b), of vectors that it assumes to be normalized',
    mistake='CosineSimilarity is -cos of vectors that it normalizes',
    stage=_LOSS,
    wrong=DirectedByKeras,
    right=Directed,
    words=('1 - sum(a·b)', '-cos', 'offset of exactly 1'),
  ),
  PortBug(
    'B56',
    'blank of CTC',
    tf1='tf.compat.v1.nn.ctc_loss takes the last class as blank',
    mistake='tf.nn.ctc_loss with its default, blank_index=0',
    stage=_LOSS,
    wrong=TranscribedWithFirstBlank,
    right=Transcribed,
    words=('blank_index=-1',),
  ),
  PortBug(
    'B56b',
    'regularization left out of the loss',
    tf1='the total loss includes the regularization losses',
    mistake='a custom loop that minimizes the loss without layer.losses',
    stage=_LOSS,
    wrong=DecayedInVain,
    right=Decayed,
    words=('exactly the sum of the regularization losses', 'layer.losses'),
  ),
  PortBug(
    'B56f',
    'list of losses that is never cleared',
    tf1="a collection is the graph's own",
    mistake='a list at module level, to which every step appends',
    stage=_LOSS,
    wrong=CollectedForEver,
    right=Collected,
    words=('it grows by', 'at each call', 'nothing clears'),
  ),
  PortBug(
    'B56h',
    'mean over a masked sequence',
    tf1='sequence_loss divides by the sum of the weights',
    mistake='Keras divides by the number of steps, masked or not',
    stage=_LOSS,
    wrong=SequencesByKeras,
    right=Sequences,
    words=('the sum of the weights in tf1', 'the number of terms in tf2'),
  ),
  PortBug(
    'B91',
    'area under a curve',
    tf1='tf.metrics.auc sums trapezoids',
    mistake='tf.keras.metrics.AUC(curve="PR") interpolates',
    stage=_LOSS,
    wrong=MeasuredByKeras,
    right=Measured,
    words=('summation_method',),
  ),
)
