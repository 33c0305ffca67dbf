"""Rules keep quiet where something else than their mistake leaves like marks.

That each fires on its own mistake, and no other rule does, the port-bug suite tests.
"""

import dataclasses
import itertools

import numpy as np
from absl.testing import absltest, parameterized

from tests.diagnosis.hand_made import HandMade
from tests.diagnosis.patterns.operations.lstm_cells_test import cell
from tf2verify.diagnosis.causes import causes_of
from tf2verify.diagnosis.evidence.failed_stage import (
  FailedStage,
  LoopEnd,
  SourceEvidence,
  Standing,
  StateEvidence,
)
from tf2verify.diagnosis.rules import RULES
from tf2verify.records.diagnosis import GraphAspect, GraphDifference, Source
from tf2verify.records.difference import ArrayDifference, Aspect, Difference
from tf2verify.records.failed_tensor import FailedTensor
from tf2verify.records.op_graph import OpGraph, OpRecord

_NUMBERS = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
_ENDS = LoopEnd('tf1', ("['lengths']",), None, True, (1, 2), False, frozenset())
_OF_STAGES = tuple(rule for rule in RULES if rule.reads is FailedStage)
_RULES = {rule.name: rule for rule in _OF_STAGES}


def difference(aspect, op_type, what='', tf1=None, tf2=None, op='net/op'):
  return GraphDifference(aspect, op, op_type, what, str(tf1), str(tf2), tf1, tf2)


def batch_statistics(axes, tf1=''):
  mean = f'Mean(keep_dims=True, reduction_indices={axes})'
  aspect = GraphAspect.REPLACED if tf1 else GraphAspect.EXTRA
  return difference(aspect, 'Mean', tf1=tf1, tf2=f'{mean} → SquaredDifference → {mean}')


def source(tf1_path=('Mul',), tf2_path=('Mul',), tf1=None, tf2=None, differences=(), **changes):
  one = _NUMBERS if tf1 is None else tf1
  other = 2 * one if tf2 is None else tf2
  record = Source(
    'net/op',
    'layer/net/op',
    tf1_path[-1],
    tf2_path[-1],
    None,
    None,
    tuple(tf1_path),
    tuple(tf2_path),
    1.0,
    1.0,
    False,
    None,
    None,
    tuple(differences),
  )
  return SourceEvidence(dataclasses.replace(record, **changes), one, other)


def tried(found, standing):
  """Returns a source whose differences have been tried out."""
  known = tuple((one, standing) for one in found.source.differences)
  return dataclasses.replace(found, standings=known)


def attribute(op_type, what, tf1, tf2, standing=Standing.SOLE, *more):
  """Returns evidence of another attribute at an operation."""
  first = difference(GraphAspect.ATTRIBUTE, op_type, what, tf1, tf2)
  return evidence(tried(source(differences=[first, *more]), standing))


def at_stride(stride, found):
  """Returns evidence with the graphs of a convolution of this stride."""
  strides = (('strides', (1, stride, stride, 1)),)
  tf1, tf2 = (
    OpGraph(side, (OpRecord(name, 'Conv2D', (), attributes=strides),))
    for side, name in (('tf1', 'net/op'), ('tf2', 'layer/net/op'))
  )
  return dataclasses.replace(found, tf1_graph=tf1, tf2_graph=tf2)


def state(before, tf1, tf2, momenta=(0.9, 0.9), name='v'):
  """Returns evidence of a variable that a call leaves in another state."""
  arrays = (np.asarray(array, np.float32) for array in (before, tf1, tf2))
  return StateEvidence(name, *arrays, momenta)


def averaged(*states, updates=(), **fields):
  found = [Difference('state after the call', one.name, Aspect.VALUES, '', '') for one in states]
  return evidence(differences=found, states=states, updates=updates, **fields)


def average(momentum, factor=1.0):
  """Returns what an average of ones becomes."""
  return momentum + (1 - momentum) * factor * _BATCH


def fused(size, image=(1, 1), names=('v',)):
  """Returns a graph in which moving averages follow the variances of fused batch norms."""
  g = HandMade('tf1')
  x, scale = (g.input(np.ones(shape), str(shape)) for shape in ((size, *image, 4), (4,)))
  for name in names:
    position, _ = g.op('FusedBatchNormV3', f'norm/{name}', x, scale, outputs=3, shape=(4,))
    before = g.variable(name, np.ones(4))
    step = g.op('Sub', f'step/{name}', before, (position, 2))
    g.target(f'update of {name}', g.op('Sub', f'after/{name}', before, step))
  return g.graph()


def of_output(*through):
  """Returns evidence of a loss that reads an output, of which tf1 alone has a gradient."""
  sides = []
  for side, ways in (('tf1', [()] * len(through)), ('tf2', through)):
    made = HandMade(side)
    output = made.input(_NUMBERS, "outputs['a']")
    parts = [made.op('Square', f's_{n}', output, through={0: way}) for n, way in enumerate(ways)]
    made.target('loss value', made.op('AddV2', 'sum', *parts))
    if side == 'tf1':
      made.target("loss gradient outputs['a']", made.op('Mul', 'gradients/mul', output))
    sides.append(made.graph())
  found = [Difference('loss gradient', "outputs['a']", Aspect.PRESENCE, '', 'missing')]
  return evidence(stage='loss', differences=found, **graphs(*sides))


def drawing(*types):
  """Returns a graph of tf1 with draws, and one of the port with one draw of uniform numbers."""
  graphs = graph('tf1', *types, 'Mul'), graph('tf2', 'StatelessRandomUniformV2', 'Mul')
  return dict(zip(('tf1_graph', 'tf2_graph'), graphs, strict=True))


def evidence(*sources, stage='zero_randomness', tensors=(), **fields):
  found = fields.pop('differences', ())
  return FailedStage(stage, tuple(found), tuple(tensors), tuple(sources), **fields)


def failed(quantity, tf1, tf2, name='w'):
  return FailedTensor(quantity, name, 'run', np.asarray(tf1), np.asarray(tf2))


def missing(quantity, name):
  return Difference(quantity, name, Aspect.PRESENCE, '1.0 (float32)', 'missing')


def graph(side, *ops, dtype='float32', **attributes):
  """Returns a graph of a chain, from a variable called `w` to the output."""
  made = HandMade(side)
  key = made.variable('w', np.ones(3, np.float32))
  for number, op in enumerate(ops):
    key = made.op(op, f'op_{number}', key, dtype=dtype, **attributes)
  made.target('output w', key)
  return made.graph()


def product(one, other, kinds=('input', 'input')):
  """Returns a graph of one product, which is the place of `source`, by shapes."""
  ops = [
    OpRecord(f'x{n}', kind, (), outputs=(('float32', shape),))
    for n, (kind, shape) in enumerate(zip(kinds, (one, other), strict=True))
  ]
  made = [OpRecord(name, 'Mul', ((0, 0), (1, 0))) for name in ('net/op', 'layer/net/op')]
  return OpGraph('tf2', (*ops, *made))


def graphs(tf1, tf2):
  return {'tf1_graph': tf1, 'tf2_graph': tf2}


def softmax(side, masked, number=-1e9, by=''):
  """Returns a graph of a softmax that is the place of `source`, its logits masked or not.

  Args:
    side: of the graph.
    masked: whether a number is added to the logits by a mask.
    number: that one.
    by: the type of an operation between the two, '' for none.
  """
  made = HandMade(side)
  logits = made.input(_NUMBERS, "['scores']")
  if masked:
    lengths = made.input(np.ones(4, np.float32), "['lengths']")
    mask = made.op('Mul', 'm', lengths, made.constant(number))
    logits = made.op('AddV2', 'add', logits, made.op(by, 'as', mask) if by else mask)
  end = 'net/op' if side == 'tf1' else 'layer/net/op'
  made.target('output w', made.chain(logits, 'Softmax', f'Square {end}'))
  return made.graph()


def crossentropy(side, clipped, of_sigmoid=False):
  """Returns a graph of a logarithm, of what is clipped to a probability or not."""
  made = HandMade(side)
  net = made.input(_NUMBERS, "['scores']")
  net = made.op('Sigmoid', 'sigmoid', net) if of_sigmoid else net
  if clipped:
    net = made.op('Minimum', 'low', net, made.constant(1.0 - 1e-7))
    net = made.op('Maximum', 'high', net, made.constant(1e-7))
  end = 'net/op' if side == 'tf1' else 'layer/net/op'
  made.target('output w', made.chain(net, 'Log' if clipped else 'Log1p', f'Neg {end}'))
  return made.graph()


def losses(tf1, tf2):
  return evidence(source(), stage='loss', tf1_op_types=frozenset(['Log1p']), **graphs(tf1, tf2))


def rows(*lengths, steps=4):
  """Returns rows that end in zeros."""
  values = np.ones((len(lengths), steps, 2), np.float32)
  for row, length in enumerate(lengths):
    values[row, length:] = 0
  return values


def stepped(tf1, tf2, stage='training_steps', quantity='loss'):
  """Returns a step whose sides have these operations, and differ in a quantity."""
  found = [graph(side, *ops) for side, ops in (('tf1', tf1), ('tf2', tf2))]
  differences = [missing(quantity, '(total)')]
  return evidence(source(), stage=stage, differences=differences, **graphs(*found))


def dropped(threshold, shape=None):
  made = HandMade('tf1')
  kind = 'RandomUniform' if threshold else 'Relu'
  numbers = made.op(kind, 'numbers', made.constant([4, 8]))
  mask = made.op('GreaterEqual', 'net/op', numbers, made.constant(0.2), shape=shape)
  made.target('output w', mask)
  return made.graph()


def masks(tf1, tf2, drawn=True):
  return {'tf1_graph': dropped(drawn, tf1), 'tf2_graph': dropped(drawn, tf2)}


def moved_relu(*, before_in_tf2=True, behind=True, reads_norm=True):
  """Returns evidence of a relu before a batch norm on one side, and behind it on the other."""
  graphs = {}
  for side in ('tf1', 'tf2'):
    made = HandMade(side)
    start = made.variable('w', np.ones(3, np.float32))
    is_before = (side == 'tf2') is before_in_tf2
    read = made.op('Relu', 'before', start) if is_before else start
    norm = made.op('FusedBatchNormV3', 'norm', read)
    if not (is_before and behind):
      norm = made.op('Relu', 'behind', norm if reads_norm else start)
    made.target('output w', norm)
    graphs[f'{side}_graph'] = made.graph()
  ones = ('Relu',), None
  kinds = (GraphAspect.EXTRA, GraphAspect.MISSING)
  if not before_in_tf2:
    ones, kinds = ones[::-1], kinds[::-1]
  names = {'tf1_op': 'norm', 'tf2_op': 'norm'}
  found = [
    source(
      ('FusedBatchNormV3',),
      ('FusedBatchNormV3',),
      differences=[difference(kinds[0], 'Relu', '', *ones[::-1], op='before')],
      **names,
    )
  ]
  if behind:
    found.append(source(differences=[difference(kinds[1], 'Relu', '', *ones, op='behind')]))
  return evidence(*found, **graphs)


def labelled(slot):
  """Returns a graph in which `labels` is read as labels (1) or as logits (0)."""
  made = HandMade('tf1')
  shaped = made.op('Reshape', 'labels', made.variable('w', np.ones(3)))
  keys = [made.variable('v', np.ones(3))] * 2
  keys[slot] = shaped
  made.target('output w', made.op('SoftmaxCrossEntropyWithLogits', 'loss', *keys))
  return made.graph()


_BATCH = np.array([0.5, 1.5, 2.5, 0.7], np.float32)
_BOTH_DROP = {'tf1_graph': dropped(True), 'tf2_graph': dropped(True)}
_PAD = difference(GraphAspect.EXTRA, 'Pad', '', None, ('Pad',), op='Pad')
_PADDED, _SPELT = (
  difference(GraphAspect.REPLACED, 'FusedBatchNormV3', '', ('FusedBatchNormV3',), its, op='norm')
  for its in (('Pad', 'Mul', 'AddV2'), ('Mul', 'AddV2'))
)
_LATER = rows(4, 3) + np.array([[[0]], [[1]]], np.float32) * rows(4, 4)
_SCALED = [failed('gradient', _NUMBERS, 128 * _NUMBERS)]
_STOPPED = difference(GraphAspect.GRADIENT, 'Sub', 'x', ('StopGradient',), (), 'sub')
_DECAY = {'tf1_op_types': frozenset(['L2Loss']), 'stage': 'zero_randomness'}
_LOOP = {'tf1_op_types': frozenset(['While'])}
_REVERSED = {'tf1_op_types': frozenset(['While', 'ReverseSequence'])}
_NAN = _NUMBERS.copy()
_NAN[0] = np.nan
_ZERO_ROW = _NUMBERS.copy()
_ZERO_ROW[0] = 0
_PERMUTED = _NUMBERS[:, ::-1]

# Rule, what makes it fire, and what is near it.
_NEAR_MISSES = (
  (
    'outer_broadcast',
    evidence(source(), **graphs(product((4,), (4,)), product((4,), (4, 1)))),
    evidence(source(), **graphs(product((4,), (4, 1)), product((4,), (4, 1)))),  # on both sides
    evidence(source(), **graphs(product((4,), (4,)), product((4, 4), (4, 1)))),
    evidence(**graphs(product((4,), (4,)), product((4,), (4, 1)))),  # no place behind it
    # A scale of as many channels as there are examples.
    evidence(source(), **graphs(product((4,), (4,)), product((4,), (4, 1), ('variable', 'input')))),
  ),
  (
    'clipped_logits',
    losses(crossentropy('tf1', False), crossentropy('tf2', True)),
    losses(crossentropy('tf1', True), crossentropy('tf2', True)),  # on both sides
    losses(crossentropy('tf1', False), crossentropy('tf2', True, of_sigmoid=True)),
    losses(crossentropy('tf1', False), crossentropy('tf2', False)),
  ),
  (
    'inference_in_step',
    stepped(['Relu', 'RandomUniform'], ['Relu']),
    stepped(['Relu', 'RandomUniform'], ['Relu', 'StatelessRandomUniformV2']),
    stepped(['Relu'], ['Relu']),
    stepped(['Relu', 'RandomUniform'], ['Relu'], quantity='update'),
    stepped(['Relu', 'RandomUniform'], ['Relu'], stage='seeded_constant'),
  ),
  (
    'softmax_mask_value',
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True, -1.0))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', False))),
  ),
  (
    'forgotten_softmax_mask',
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', False))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True, -1.0))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', False), softmax('tf2', True))),
    evidence(**graphs(softmax('tf1', True), softmax('tf2', False))),  # no place behind it
    # `mask[:, None]`; and what no rule knows.
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True, by='StridedSlice'))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True, by='Einsum'))),
  ),
  (
    'needless_softmax_mask',
    evidence(source(), **graphs(softmax('tf1', False), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', True), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', True, -1.0), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', True, by='Einsum'), softmax('tf2', True))),
    evidence(source(), **graphs(softmax('tf1', False), softmax('tf2', False))),
  ),
  (
    'activation_order',
    moved_relu(),
    moved_relu(behind=False),
    moved_relu(reads_norm=False),
  ),
  ('activation', moved_relu(behind=False), moved_relu(), moved_relu(before_in_tf2=False)),
  (
    'lstm_gate_order',
    evidence(source(), **graphs(cell('tf1', 'icfo'), cell('tf2', 'ifco'))),
    evidence(source(), **graphs(cell('tf1', 'icfo'), cell('tf2', 'icfo'))),
    evidence(source(), **graphs(cell('tf1', 'icfo'), graph('tf2', 'Split', 'Sigmoid'))),
    evidence(**graphs(cell('tf1', 'icfo'), cell('tf2', 'ifco'))),
  ),
  (
    'lstm_forget_bias',
    evidence(source(), **graphs(cell('tf1', 'icfo', 1.0), cell('tf2', 'icfo', 0.0))),
    evidence(source(), **graphs(cell('tf1', 'icfo', 1.0), cell('tf2', 'ifco', 1.0))),
  ),
  (
    'recurrent_activation',
    evidence(source(), **graphs(cell('tf1', 'ifco', sigmoid='0.2'), cell('tf2', 'ifco'))),
    evidence(source(), **graphs(cell('tf1', 'ifco'), cell('tf2', 'ifco'))),
    evidence(source(), **graphs(cell('tf1', 'ifco', sigmoid='0.25'), cell('tf2', 'ifco'))),
    evidence(source(), **graphs(cell('tf1', 'ifco', sigmoid='0.2'), graph('tf2', 'Tanh'))),
  ),
  (
    'hard_sigmoid_slope',
    evidence(
      source(),
      **graphs(cell('tf1', 'ifco', sigmoid='0.2'), cell('tf2', 'ifco', sigmoid='relu6')),
    ),
    evidence(
      source(),
      **graphs(cell('tf1', 'ifco', sigmoid='0.2'), cell('tf2', 'icfo', sigmoid='0.2')),
    ),
  ),
  (
    'gelu_formula',
    evidence(source(('Tanh', 'Mul'), ('Erf', 'Mul'), absolute=2e-4)),
    evidence(source(('Tanh', 'Mul'), ('Erf', 'Mul'), absolute=2e-3)),
    evidence(source(('Tanh', 'Mul'), ('Tanh', 'Mul'), absolute=2e-4)),
    evidence(source(('Tanh', 'Mul'), ('Sigmoid', 'Mul'), absolute=2e-4)),
  ),
  (
    'leaky_relu_slope',
    evidence(
      source(differences=[difference(GraphAspect.ATTRIBUTE, 'LeakyRelu', 'alpha', 0.2, 0.3)])
    ),
    evidence(source(differences=[difference(GraphAspect.ATTRIBUTE, 'Elu', 'alpha', 0.2, 0.3)])),
  ),
  (
    'flatten_order',
    evidence(
      source(
        ('Transpose', 'Reshape'),
        ('Reshape',),
        tf2=_PERMUTED,
        differences=[difference(GraphAspect.MISSING, 'Transpose', tf1=('Transpose',))],
      )
    ),
    evidence(
      source(  # other elements
        ('Transpose', 'Reshape'),
        ('Reshape',),
        differences=[difference(GraphAspect.MISSING, 'Transpose', tf1=('Transpose',))],
      )
    ),
    evidence(
      source(  # no reshape
        ('Transpose', 'MatMul'),
        ('MatMul',),
        tf2=_PERMUTED,
        differences=[difference(GraphAspect.MISSING, 'Transpose', tf1=('Transpose',))],
      )
    ),
  ),
  (
    'arg_axis',
    evidence(source(differences=[difference(GraphAspect.CONSTANT, 'ArgMax', 'dimension', 0, -1)])),
    evidence(
      source(differences=[difference(GraphAspect.CONSTANT, 'Max', 'reduction_indices', 0, -1)])
    ),
  ),
  (
    'integer_division',
    evidence(source(('FloorDiv', 'Cast'), ('Cast', 'RealDiv'))),
    evidence(source(('FloorDiv', 'RealDiv'), ('FloorDiv', 'RealDiv'))),
    evidence(source(('RealDiv', 'Cast'), ('FloorDiv', 'Cast'))),
  ),
  (
    'forgotten_mask',
    evidence(loop_ends=(_ENDS,)),
    evidence(loop_ends=(dataclasses.replace(_ENDS, side='tf2'),)),
    evidence(**_LOOP),
  ),
  (
    'needless_mask',
    evidence(loop_ends=(dataclasses.replace(_ENDS, side='tf2'),)),
    evidence(loop_ends=(_ENDS,)),
  ),
  (
    'sequence_end',
    evidence(tensors=[failed('output', rows(4, 2), rows(4, 4))], **_LOOP),
    evidence(tensors=[failed('output', rows(4, 2), rows(4, 4))]),  # no loop
    evidence(tensors=[failed('output', rows(2, 2), rows(4, 4))], **_LOOP),  # all rows end early
    evidence(tensors=[failed('output', rows(4, 2), 2 * rows(4, 4))], **_LOOP),  # before as well
    evidence(tensors=[failed('output', rows(4, 4), rows(4, 2))], **_LOOP),  # zeros of the port
  ),
  (
    'reversed_padding',
    evidence(tensors=[failed('output', rows(4, 3), _LATER)], **_REVERSED),
    evidence(tensors=[failed('output', rows(4, 3), _LATER)], **_LOOP),
    evidence(
      tensors=[failed('output', rows(4, 3), _LATER)],
      tf2_op_types=frozenset(['ReverseSequence']),
      **_REVERSED,
    ),
    evidence(tensors=[failed('output', rows(4, 3), 2 * rows(4, 3))], **_REVERSED),  # long rows too
  ),
  (
    'embedding_partition',
    evidence(
      source(('FloorMod', 'DynamicPartition'), ('FloorDiv', 'FloorMod', 'Maximum', 'GatherV2'))
    ),
    evidence(
      source(('FloorMod', 'DynamicPartition'), ('FloorMod', 'DynamicPartition', 'GatherV2'))
    ),
    evidence(source(('GatherV2',), ('FloorDiv', 'FloorMod', 'Maximum', 'DynamicPartition'))),
  ),
  (
    'weight_decay_factor',
    evidence(tensors=[failed('regularization loss', 1.5, 3.0)], **_DECAY),
    evidence(tensors=[failed('regularization loss', 1.5, 2.9)], **_DECAY),
    evidence(tensors=[failed('regularization loss', 1.5, 3.0)]),  # not L2
    evidence(  # one loss only is twice as large
      tensors=[
        failed('regularization loss', 1.5, 3.0),
        failed('regularization loss', 1.5, 4.0, 'v'),
      ],
      **_DECAY,
    ),
    evidence(  # another one is lost
      tensors=[failed('regularization loss', 1.5, 3.0)],
      differences=[missing('regularization loss', 'v')],
      **_DECAY,
    ),
  ),
  (
    'depthwise_regularizer',
    evidence(
      differences=[missing('regularization loss', 'w')],
      tf1_graph=graph('tf1', 'DepthwiseConv2dNative'),
    ),
    evidence(differences=[missing('regularization loss', 'w')], tf1_graph=graph('tf1', 'Conv2D')),
    evidence(
      differences=[missing('regularization loss', 'v')],
      tf1_graph=graph('tf1', 'DepthwiseConv2dNative'),
    ),
  ),
  (
    'gradient_override',
    evidence(
      stage='gradients',
      agrees_as_graph=True,
      **graphs(
        graph('tf1', 'Relu', _gradient_op_type='Guided'),
        graph('tf2', 'Relu', _gradient_op_type='Guided'),
      ),
    ),
    evidence(  # the gradient differs in the graph as well
      source(),
      stage='gradients',
      **graphs(
        graph('tf1', 'Relu', _gradient_op_type='Guided'),
        graph('tf2', 'Relu', _gradient_op_type='Guided'),
      ),
    ),
    evidence(  # tf.custom_gradient
      stage='gradients',
      agrees_as_graph=True,
      **graphs(
        graph('tf1', 'IdentityN', _gradient_op_type='CustomGradient-7'),
        graph('tf2', 'IdentityN', _gradient_op_type='CustomGradient-9'),
      ),
    ),
    evidence(
      stage='gradients', agrees_as_graph=True, **graphs(graph('tf1', 'Relu'), graph('tf2', 'Relu'))
    ),
  ),
  (
    'loss_scale',
    evidence(stage='gradients', tensors=_SCALED, tf1_graph=graph('tf1', 'MatMul', dtype='float16')),
    evidence(stage='gradients', tensors=_SCALED, tf1_graph=graph('tf1', 'MatMul')),
    evidence(
      stage='gradients',
      tensors=[failed('gradient', _NUMBERS, 100 * _NUMBERS)],
      tf1_graph=graph('tf1', 'MatMul', dtype='float16'),
    ),
    evidence(
      stage='gradients',
      tensors=[*_SCALED, failed('gradient', _NUMBERS, 64 * _NUMBERS, 'v')],
      tf1_graph=graph('tf1', 'MatMul', dtype='float16'),
    ),
  ),
  (
    'other_draw',
    evidence(source(('TruncatedNormal', 'Mul'), ('Mul',)), **drawing('TruncatedNormal')),
    evidence(source(('Mul',), ('Mul',)), **drawing('TruncatedNormal')),  # elsewhere
    evidence(  # as much as tf1, by seeds that are no state
      source(('RandomUniform', 'Mul'), ('Mul',)), **drawing('RandomUniform')
    ),
    evidence(  # another one besides
      source(('TruncatedNormal', 'Mul'), ('Mul',)), **drawing('TruncatedNormal', 'RandomUniform')
    ),
  ),
  (
    'dropout_rate',
    evidence(
      source(differences=[difference(GraphAspect.CONSTANT, 'GreaterEqual', 'y', 0.2, 0.8)]),
      tf1_graph=dropped(True),
    ),
    evidence(
      source(differences=[difference(GraphAspect.CONSTANT, 'GreaterEqual', 'y', 0.2, 0.8)]),
      tf1_graph=dropped(False),
    ),
  ),
  (
    'noise_shape',
    evidence(source(('Mul',), ('Mul',)), **masks((4, 1), (4, 8))),
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (4, 8))),
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (8, 4))),  # no broadcasting
    evidence(source(('Mul',), ('Mul',)), **masks((4, 1), (4, 1, 8))),
    evidence(source(('Mul',), ('Mul',)), **masks((4, 1), (4, 8), drawn=False)),
  ),
  (
    'dropout_position',
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (4, 4, 8))),
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (4, 8))),
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (2, 2, 8))),  # as many elements
    evidence(source(('Mul',), ('Mul',)), **masks((4, 1), (4, 8))),  # along other axes
    evidence(source(('Mul',), ('Mul',)), **masks((4, 8), (4, 4, 8), drawn=False)),
  ),
  (
    'dropout_presence',
    evidence(source(('Mul',), ('RandomUniform', 'GreaterEqual', 'Mul')), tf2_graph=dropped(True)),
    evidence(source(('Mul',), ('RandomUniform', 'Mul')), **_BOTH_DROP),
    evidence(  # as many on either side: it stands elsewhere
      source(('Mul',), ('RandomUniform', 'GreaterEqual', 'Mul')), **_BOTH_DROP
    ),
    evidence(
      source(('RandomUniform', 'GreaterEqual', 'Mul'), ('RandomUniform', 'GreaterEqual', 'Mul'))
    ),
    evidence(  # dropped by `floor(uniform + keep)` there
      source(('RandomUniform', 'AddV2', 'Floor', 'Mul'), ('RandomUniform', 'GreaterEqual', 'Mul')),
      tf2_graph=dropped(True),
    ),
  ),
  (
    'initializer_scale',
    evidence(tensors=[failed('initial value', _NUMBERS, 0.05 * _NUMBERS)]),
    evidence(tensors=[failed('initial value', _NUMBERS, _PERMUTED)]),
    evidence(tensors=[failed('gradient', _NUMBERS, 0.05 * _NUMBERS)]),
    evidence(tensors=[failed('initial value', [0.1, 0.3], [0.2, 0.6])]),  # two make a line
  ),
  (
    'concat_order',
    evidence(source(('ConcatV2',), ('ConcatV2',), tf2=_PERMUTED)),
    evidence(source(('ConcatV2',), ('ConcatV2',), tf2=_PERMUTED + 1)),
    evidence(source(('GatherV2',), ('GatherV2',), tf2=_PERMUTED)),
  ),
  (
    'division_by_zero',
    evidence(tensors=[failed('output', _ZERO_ROW, _NAN)], tf2_graph=graph('tf2', 'Sum', 'RealDiv')),
    evidence(tensors=[failed('output', _NUMBERS, _NAN)], tf2_graph=graph('tf2', 'Sum', 'RealDiv')),
    evidence(tensors=[failed('output', _ZERO_ROW, _NAN)], tf2_graph=graph('tf2', 'RealDiv', 'Log')),
  ),
  (
    'batch_norm_mode',
    attribute('FusedBatchNormV3', 'is_training', True, False, Standing.UNTRIED),
    attribute('FusedBatchNormV3', 'is_training', True, False, Standing.REFUTED),
    attribute('FusedBatchNormV3', 'data_format', 'NHWC', 'NCHW'),
  ),
  (
    'normalization_epsilon',
    attribute('FusedBatchNormV3', 'epsilon', 1e-3, 1e-5),
    attribute('FusedBatchNormV3', 'epsilon', 1e-3, 1e-5, Standing.REFUTED),
  ),
  (
    'strides',
    attribute('Conv2D', 'strides', (1, 2, 2, 1), (1, 1, 1, 1)),
    attribute('Conv2D', 'strides', (1, 2, 2, 1), (1, 1, 1, 1), Standing.REFUTED),
    attribute('Conv2D', 'strides', (1, 2, 2, 1), (1, 1, 1, 1), Standing.UNTRIED),
  ),
  (
    'padding_default',
    attribute('Conv2D', 'padding', 'SAME', 'VALID'),
    attribute('Conv2D', 'padding', 'SAME', 'VALID', Standing.REFUTED),  # a window of 1x1
    attribute('Conv2D', 'padding', 'SAME', 'VALID', Standing.JOINT),  # SpaceToBatch around it
  ),
  (
    'fixed_padding',
    attribute('MaxPool', 'padding', 'SAME', 'VALID', Standing.JOINT, _PAD),
    attribute('MaxPool', 'padding', 'VALID', 'SAME', Standing.JOINT, _PAD),
    attribute('MaxPool', 'padding', 'SAME', 'VALID', Standing.JOINT),
    attribute('MaxPool', 'padding', 'SAME', 'VALID', Standing.REFUTED, _PAD),
    at_stride(1, attribute('Conv2D', 'padding', 'SAME', 'VALID', Standing.JOINT, _PAD)),
  ),
  (
    'reduction_axes',
    evidence(source(differences=[difference(GraphAspect.CONSTANT, 'Mean', 'axis', '1', '2')])),
    evidence(
      tried(
        source(differences=[difference(GraphAspect.CONSTANT, 'Mean', 'axis', '-1', '[2]')]),
        Standing.REFUTED,
      )
    ),
    evidence(  # what another reduction has left
      source(
        differences=[
          difference(GraphAspect.CONSTANT, 'Mean', 'axis', '[1, 2]', '1'),
          difference(GraphAspect.EXTRA, 'Max', '', (), ('Max',)),
        ]
      )
    ),
  ),
  (
    'resize_sampling',
    attribute('ResizeBilinear', 'align_corners', True, False),
    attribute('ResizeBilinear', 'align_corners', True, False, Standing.REFUTED),
  ),
  (
    'moving_average_momentum',
    averaged(state(np.ones(4), average(0.9), average(0.99), (0.9, 0.99))),
    averaged(state(np.ones(4), average(0.9), average(0.95), (0.9, 0.99))),  # it follows neither
    averaged(state(np.ones(4), average(0.9), 3 * average(0.9))),
  ),
  (
    'biased_variance',
    averaged(state(np.ones(4), average(0.9, 8 / 7), average(0.9))),
    averaged(state(np.ones(4), average(0.9, 1.19), average(0.9))),  # no whole number
    averaged(state(np.ones(4), average(0.9), average(0.99), (0.9, 0.99))),
    averaged(state(np.ones(4), average(0.9, 8 / 7), average(0.9), (None, 0.9))),
    # What a fused batch norm hands on is unbiased, and of as many values as the batch has.
    averaged(state(np.ones(4), average(0.9), average(0.9, 8 / 7)), tf1_graph=fused(8)),
    averaged(state(np.ones(4), average(0.9, 8 / 7), average(0.9)), tf1_graph=fused(40)),
  ),
  (
    'variance_count',
    averaged(
      state(np.ones(4), average(0.9, 40 / 39), average(0.9, 8 / 7)), tf1_graph=fused(8, (5, 1))
    ),
    averaged(state(np.ones(4), average(0.9, 8 / 7), average(0.9)), tf1_graph=fused(8)),  # biased
    averaged(state(np.ones(4), average(0.9), average(0.9, 1.19)), tf1_graph=fused(8)),
    averaged(state(np.ones(4), average(0.9), average(0.9, 8 / 7))),  # of how many is not known
  ),
  (
    'update_count',
    averaged(state(np.ones(4), np.ones(4), average(0.9), (None, 0.9)), updates=[('v', 0, 1)]),
    # It moves: something updates it.
    averaged(state(np.ones(4), average(0.8), average(0.9), (None, 0.9)), updates=[('v', 0, 1)]),
    averaged(state(np.ones(4), average(0.8), average(0.9), (0.8, None)), updates=[('v', 1, 0)]),
  ),
  (
    'label_gradient',
    evidence(
      stage='gradients',
      gradient_differences=(dataclasses.replace(_STOPPED, op='labels'),),
      tf1_graph=labelled(1),
    ),
    evidence(stage='gradients', gradient_differences=(_STOPPED,), tf1_graph=labelled(1)),
  ),
  (
    'stopped_output',
    of_output(('StopGradient',), ('StopGradient',)),
    of_output(('StopGradient',), ()),  # lost elsewhere: one way leads on to the loss
    of_output((), ()),
  ),
  (
    'stop_gradient',
    evidence(stage='gradients', gradient_differences=(_STOPPED,)),
    evidence(
      stage='gradients',
      gradient_differences=(
        dataclasses.replace(_STOPPED, tf1_value=('gradient of A',), tf2_value=()),
      ),
    ),
  ),
)


class NearMissTest(parameterized.TestCase):
  @parameterized.named_parameters((entry[0], *entry[:2]) for entry in _NEAR_MISSES)
  def test_evidence_that_fires(self, name, hit):
    self.assertIsNotNone(_RULES[name].explain(hit))

  @parameterized.named_parameters(
    (f'{entry[0]}_{number}', entry[0], miss)
    for entry in _NEAR_MISSES
    for number, miss in enumerate(entry[2:], start=1)
  )
  def test_evidence_beside_it(self, name, miss):
    self.assertIsNone(_RULES[name].explain(miss))

  def test_update_in_inference_alone(self):
    state_before = state(np.ones(4), np.ones(4), average(0.9), (None, 0.9))
    changed = Difference('state after the call', 'v', Aspect.VALUES, '', '', 'inference, constant')
    for differences, words in (
      ((changed,), 'the port updates v in inference, and tf1 does not: let it do so only where'),
      (
        (changed, dataclasses.replace(changed, run='training, constant')),
        'the reference never updates v',
      ),
    ):
      found = evidence(differences=differences, states=[state_before], updates=[('v', 0, 1)])
      self.assertIn(words, _RULES['update_count'].explain(found).text)

  def test_variances_that_are_within_the_tolerance_here(self):
    one = state(np.ones(4), average(0.9, 8 / 7), average(0.9))
    found = _RULES['biased_variance'].explain(averaged(one, tf1_graph=fused(8, names=('v', 'w'))))
    self.assertEqual(found.change.places, ('v', 'w'))

  def test_rounding_of_a_biased_variance_is_no_count(self):
    one = state(np.ones(4), average(0.9, 8 / 7), average(0.9, 10620 / 10619))
    self.assertIsNone(_RULES['variance_count'].explain(averaged(one, tf1_graph=fused(8))))

  def test_explicit_padding_counts_at_stride_two(self):
    found = attribute('Conv2D', 'padding', 'SAME', 'VALID', Standing.JOINT, _PAD)
    self.assertIsNotNone(_RULES['fixed_padding'].explain(at_stride(2, found)))
    self.assertIsNone(_RULES['fixed_padding'].explain(at_stride(1, found)))

  def test_a_pad_among_operations_that_are_spelt_otherwise(self):
    rule = _RULES['fixed_padding']
    for more, paddings, is_one in (
      (_PADDED, ('SAME', 'VALID'), True),
      (_PADDED, ('VALID', 'SAME'), False),
      (_SPELT, ('SAME', 'VALID'), False),
    ):
      found = attribute('MaxPool', 'padding', *paddings, Standing.JOINT, more)
      self.assertEqual(rule.explain(found) is not None, is_one, more)

  def test_labels_and_logits(self):
    stopped = (dataclasses.replace(_STOPPED, op='labels'),)
    labels = evidence(stage='gradients', gradient_differences=stopped, tf1_graph=labelled(1))
    logits = evidence(stage='gradients', gradient_differences=stopped, tf1_graph=labelled(0))
    fired = [_fired(one) for one in (labels, logits)]
    self.assertEqual(fired, [['label_gradient'], ['stop_gradient']])

  @parameterized.parameters(('v', []), ('w', ['stop_gradient']))
  def test_a_stop_that_gradients_that_differ_pass(self, name, wanted):
    made = HandMade('tf1')
    keys = [made.variable(own, np.ones(3, np.float32)) for own in ('v', 'w')]
    less = made.op('Sub', 'sub', keys[1], keys[1])
    made.target('loss', made.op('AddV2', 'sum', keys[0], less))
    differs = (Difference('gradient', name, Aspect.VALUES),)
    known = {'gradient_differences': (_STOPPED,), 'differences': differs}
    found = evidence(stage='gradients', tf1_graph=made.graph(), **known)
    self.assertEqual(_fired(found), wanted)

  @parameterized.named_parameters((rule.name, rule) for rule in _OF_STAGES)
  def test_nothing_seen(self, rule):
    for stage in ('zero_randomness', 'seeded_constant', 'gradients'):
      self.assertIsNone(rule.explain(FailedStage(stage)))
    self.assertIsNone(rule.explain(evidence(source(), tensors=[failed('output', 1.0, 2.0)])))


class WeightDecayTest(absltest.TestCase):
  """Which numbers prove a factor, and which may have it by chance."""

  def cause(self, *pairs):
    tensors = [
      failed('regularization loss', np.float32(tf1), np.float32(tf2), name)
      for name, tf1, tf2 in pairs
    ]
    found = causes_of(evidence(tensors=tensors, **_DECAY))
    return next((cause for cause in found if cause.rule == 'weight_decay_factor'), None)

  def test_independent_numbers_prove_any_factor(self):
    cause = self.cause(('v', 1.5, 4.5), ('w', 0.2, 0.6))
    self.assertIn('is 3 times', cause.text)
    self.assertIn('all 2 regularization losses', cause.numbers)
    self.assertTrue(cause.is_proven)

  def test_one_number_proves_nothing(self):
    self.assertIsNone(self.cause(('w', 1.5, 4.5)))
    self.assertIsNone(self.cause(('v', 1.5, 4.5), ('w', 1.5, 4.5)))
    self.assertFalse(self.cause(('w', 1.5, 3.0)).is_proven)

  def test_a_loss_that_was_not_kept_is_not_proven(self):
    tensors = [failed('regularization loss', np.float32(n), np.float32(2 * n)) for n in (1.5, 0.2)]
    array = ArrayDifference((), 'float32', 1, 1, (), 1.0, 2.0, 1.0, 1.0, 1e-5, 0.0)
    other = dataclasses.replace(missing('regularization loss', 'v'), array=array)
    found = [*causes_of(evidence(tensors=tensors, differences=[other], **_DECAY))]
    self.assertEqual([cause.rule for cause in found], ['weight_decay_factor'])
    self.assertFalse(found[0].is_proven)


class InitialConstantTest(absltest.TestCase):
  def _cause(self, tf1, tf2, quantity='initial value', **fields):
    found = evidence(tensors=[failed(quantity, tf1, tf2)], **fields)
    return _RULES['initializer_scale'].explain(found)

  def test_constants_are_not_said_to_be_drawn(self):
    self.assertStartsWith(self._cause([1.0] * 4, [3.0] * 4).text, 'the port starts w with 3, tf1')
    self.assertStartsWith(self._cause(5.0, 4.0).text, 'the port starts w with 4, tf1 with 5')

  def test_constant_on_one_side(self):
    self.assertIn('tf1 with numbers from', self._cause(_NUMBERS, np.zeros_like(_NUMBERS)).text)

  def test_no_constant_or_explained_already(self):
    self.assertIsNone(self._cause(_NUMBERS, _PERMUTED))
    self.assertIsNone(self._cause([1.0] * 4, [3.0] * 4, 'state after the call'))
    hints = [dataclasses.replace(missing('initial value', 'w'), hint='a seed')]
    self.assertIsNone(self._cause([1.0] * 4, [3.0] * 4, differences=hints))


class BatchStatisticsTest(absltest.TestCase):
  """A batch norm that is written out on a side."""

  def cause(self, *differences, **changes):
    known = evidence(source(differences=differences), **changes)
    return _RULES['batch_norm_mode'].explain(known)

  def test_by_the_batch_in_the_port_alone(self):
    known = batch_statistics('[0]')
    self.assertIn('training=training to the layer', self.cause(known).text)
    self.assertIn('training=False to the layer', self.cause(known, stage='seeded_constant').text)

  def test_by_the_batch_in_tf1_alone(self):
    one = batch_statistics('[0, 1]')
    turned = dataclasses.replace(one, tf1=one.tf2, tf2='', aspect=GraphAspect.MISSING)
    self.assertIn('the batch statistics in tf1', self.cause(turned).text)

  def test_by_the_batch_on_both_sides(self):
    one = batch_statistics('[0, 1]')
    summed = 'Cast → Sum(keep_dims=True, reduction_indices=[0, 1]) → AddV2 → RealDiv'
    turned = dataclasses.replace(one, tf1=one.tf2, tf2=summed, aspect=GraphAspect.REPLACED)
    self.assertIsNone(self.cause(turned))
    cut = dataclasses.replace(turned, tf2='Cast → … 3 more', tf2_value=('Cast', 'Sum', 'RealDiv'))
    self.assertIsNone(self.cause(cut))
    made = HandMade('tf2')
    count = made.op('Sum', 'count', made.input(_NUMBERS, "['steps']"))
    made.target('output w', made.op('AddV2', 'add', count, made.constant(np.float32(1e-7))))
    masked = self.cause(turned, of_keras3=True, tf2_graph=made.graph())
    self.assertStartsWith(masked.text, 'the port takes the mean and variance of a batch norm over')

  def test_of_each_example(self):
    self.assertIsNone(self.cause(batch_statistics('[-1]')))

  def test_against_a_fused_one_of_unknown_mode(self):
    self.assertIsNone(self.cause(batch_statistics('[0]', 'FusedBatchNormV3()')))


class NoiseTest(absltest.TestCase):
  """Random numbers that are no mask of a dropout: of a noisy layer, say."""

  def cause(self, tf1, tf2, **graphs):
    return _RULES['dropout_presence'].explain(evidence(source(tf1, tf2), **graphs))

  def test_one_side_alone(self):
    noise, none = ('RandomStandardNormal', 'Mul', 'AddV2'), ('AddV2',)
    text = self.cause(noise, none, tf1_graph=dropped(True), tf2_graph=dropped(False)).text
    self.assertStartsWith(text, 'tf1 draws random numbers on the way to net/op and the port draws')
    self.assertIn('without training=True', text)
    text = self.cause(none, noise, tf1_graph=dropped(False), tf2_graph=dropped(True)).text
    self.assertStartsWith(text, 'the port draws random numbers')
    self.assertIsNone(self.cause(noise, noise, tf1_graph=dropped(True)))
    self.assertIsNone(self.cause(none, none, tf1_graph=dropped(True)))


class PassedDropoutTest(absltest.TestCase):
  """A dropout of which another reader reads the output, on one side."""

  def graph(self, side, reads_dropped):
    g = HandMade(side)
    net = g.op('Elu', 'tower', g.input(np.ones((2, 3), np.float32), ''))
    mask = g.op('GreaterEqual', 'mask', g.op('RandomUniform', 'random'), g.constant(0.2))
    scaled = g.op('Mul', 'scaled', net, g.constant(1.25))
    dropped = g.op('SelectV2', 'dropped', mask, scaled)
    kernel = g.variable('w', np.ones((3, 3)))
    head = g.op('MatMul', 'head', dropped if reads_dropped else net, kernel)
    g.target('output', g.op('AddV2', 'sum', head, dropped))
    return g.graph()

  def cause(self, one, other, read):
    known = difference(GraphAspect.WIRING, 'MatMul', 'a', *read)
    graphs = {'tf1_graph': self.graph('tf1', one), 'tf2_graph': self.graph('tf2', other)}
    return _RULES['dropout_presence'].explain(evidence(source(differences=(known,)), **graphs))

  def test_the_port_reads_its_input(self):
    text = self.cause(True, False, ('dropped', 'tower')).text
    self.assertIn('dropped in tf1, but the input of one, tower in the port', text)
    self.assertEndsWith(text, 'let it read the output of the dropout')

  def test_tf1_reads_its_input(self):
    text = self.cause(False, True, ('tower', 'dropped')).text
    self.assertIn('dropped in the port, but the input of one, tower in tf1', text)
    self.assertEndsWith(text, 'let it read what the dropout of the port is given')

  def test_another_tensor(self):
    self.assertIsNone(self.cause(True, False, ('mask', 'tower')))


class MovedDropoutTest(absltest.TestCase):
  """As many dropouts on both sides, of which one stands elsewhere."""

  def graph(self, side, after):
    g = HandMade(side)
    x = g.input(np.ones((2, 3), np.float32), '')

    def drop(net):
      mask = g.op('GreaterEqual', 'mask', g.op('RandomUniform', 'random'), g.constant(0.2))
      return g.op('SelectV2', 'dropped', mask, g.op('Mul', 'scaled', net, g.constant(1.25)))

    net = x if after else drop(x)
    net = g.op('Elu', 'tower', net)
    net = drop(net) if after else net
    g.target('output', g.op('MatMul', 'head', net, g.variable('w', np.ones((3, 3)))))
    return g.graph()

  def cause(self, one, other, read=('dropped', 'tower')):
    known = difference(GraphAspect.WIRING, 'MatMul', 'a', *read)
    found = source(differences=(known,))
    graphs = {'tf1_graph': self.graph('tf1', one), 'tf2_graph': self.graph('tf2', other)}
    return _RULES['dropout_presence'].explain(evidence(found, **graphs))

  def test_it_stands_elsewhere(self):
    text = self.cause(True, False).text
    self.assertStartsWith(text, 'the dropout is at a different position in the port: ')
    self.assertIn(
      'reads dropped in tf1, which is the output of a dropout, and tower in the port', text
    )
    self.assertIn('reads dropped in the port', self.cause(False, True, ('tower', 'dropped')).text)

  def test_silent(self):
    self.assertIsNone(self.cause(True, True, ('dropped', 'dropped')))
    self.assertIsNone(self.cause(True, False, ('tower', 'tower')))


class RegistryTest(absltest.TestCase):
  def test_names_are_unique(self):
    self.assertLen({rule.name for rule in RULES}, len(RULES))

  def test_evidence_is_frozen(self):
    for kind in {rule.reads for rule in RULES}:
      self.assertTrue(dataclasses.is_dataclass(kind), kind)
      self.assertTrue(kind.__dataclass_params__.frozen, kind)

  def test_evidence_of_one_kind_stands_together(self):
    kinds = [kind for kind, _ in itertools.groupby(rule.reads for rule in RULES)]
    self.assertLen(kinds, len(set(kinds)))

  def test_every_rule_has_near_misses(self):
    self.assertCountEqual((entry[0] for entry in _NEAR_MISSES), _RULES)
    for name, _, *misses in _NEAR_MISSES:
      self.assertNotEmpty(misses, name)

  def test_what_a_trial_refutes_is_not_said(self):
    for name, hit, *_ in _NEAR_MISSES:
      refuted = [tried(found, Standing.REFUTED) for found in hit.sources]
      if any(found.source.differences for found in hit.sources):
        fired = _fired(dataclasses.replace(hit, sources=tuple(refuted)))
        self.assertNotIn(name, fired)

  def test_hits_fire_no_second_rule(self):
    for name, hit, *_ in _NEAR_MISSES:
      self.assertEqual(_fired(hit), [name])

  def test_activation_moved_the_other_way(self):
    cause = _RULES['activation_order'].explain(moved_relu(before_in_tf2=False))
    self.assertStartsWith(cause.text, 'tf1 applies relu before the batch norm')
    self.assertEqual(
      cause.evidence, 'before before the batch norm (tf1), behind after it (the port)'
    )

  def test_activation_that_tf1_writes_as_a_maximum(self):
    of_tf1, of_port = HandMade('tf1'), HandMade('tf2')
    start = of_tf1.variable('w', np.ones(3, np.float32))
    multiple = of_tf1.op('Mul', 'multiple', start)
    of_tf1.target('output w', of_tf1.op('Maximum', 'leaky', multiple, start))
    start = of_port.variable('w', np.ones(3, np.float32))
    of_port.target('output w', of_port.op('LeakyRelu', 'leaky', start))
    extra = difference(GraphAspect.EXTRA, 'LeakyRelu', '', None, ('LeakyRelu',))
    graphs = {'tf1_graph': of_tf1.graph(), 'tf2_graph': of_port.graph()}
    cause = _RULES['activation'].explain(evidence(source(differences=[extra]), **graphs))
    self.assertIn('tf1 applies it elsewhere, as the maximum leaky', cause.text)

  def test_array_evidence_of_other_shapes(self):
    odd = failed('output', _NUMBERS, _NUMBERS[:2])
    self.assertEmpty(_fired(evidence(source(tf2=_NUMBERS[:2]), tensors=[odd])))


def _fired(found):
  return [cause.rule for cause in causes_of(found)]


class ConcatOrderTest(parameterized.TestCase):
  """Slices in another order are those of other inputs, or of parts in turn."""

  # Six slices of two parts, one after the other and in turn.
  turns = _NUMBERS.reshape(4, 2, 3).transpose(0, 2, 1).reshape(4, 6)

  def said(self, tf1_path, tf2_path, tf2, tf1=None):
    found = causes_of(evidence(source(tf1_path, tf2_path, tf1, tf2)))
    return next(iter(found)).text

  def test_parts_in_turn(self):
    text = self.said(('ConcatV2',), ('Pack', 'Reshape'), self.turns)
    self.assertIn('the port interleaves the slices of 2 parts along axis 1', text)
    text = self.said(('Pack', 'ConcatV2'), ('ConcatV2',), self.turns)
    self.assertIn('tf1 interleaves the slices of 3 parts along axis 1', text)

  def test_inputs_in_another_order(self):
    for paths in ((('ConcatV2',), ('ConcatV2',)), (('Pack', 'ConcatV2'), ('Pack', 'ConcatV2'))):
      self.assertIn('the order of the inputs', self.said(*paths, self.turns))
    other = self.said(('ConcatV2',), ('Pack', 'Reshape'), _NUMBERS[:, [1, 0, 2, 3, 4, 5]])
    self.assertIn('the order of the inputs', other)
    ten = np.arange(20.0, dtype=np.float32).reshape(2, 10)  # not of three parts, nor of four
    other = self.said(('ConcatV2',), ('Pack', 'Reshape'), ten[:, [1, 0, *range(2, 10)]], ten)
    self.assertIn('the order of the inputs', other)


if __name__ == '__main__':
  absltest.main()
