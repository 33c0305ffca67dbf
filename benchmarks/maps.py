"""Variable maps of native ports of Keras 3, derived: how many variables, and in what time.

    python -m benchmarks.maps [--pairs NAME ...]

Each pair of `benchmarks/map_pairs` runs in a process of its own. Its map is derived; the first six
stages of the ladder climb through it; and, apart from both, the port is called with TF1's values
moved through the map, and what it yields is compared with what TF1 yields. Prints a row for each
pair: variables of TF1, those in the map, those of either side without a partner, those that
nothing decides, the greatest difference of the forward pass, the time to derive and that of the
six stages, and what the goal is. Exits with 1 when a row misses its goal.
"""

import argparse
import dataclasses
import importlib
import re
import subprocess
import sys
import time
from typing import Any

# Of the greatest output: two sides that are the same model but for rounding.
_SAME = 1e-4


@dataclasses.dataclass(frozen=True)
class Pair:
  """A pair of models, and what has to be found.

  Attributes:
    case: module and class in `benchmarks/map_pairs`.
    port_only: how many variables the port has in addition.
    tf1_only: likewise, of TF1.
    named: expressions that the report has to match, where the two are not the same model.
    starts: what it has to match of initial values, where these alone differ.
  """

  case: str
  port_only: int = 0
  tf1_only: int = 0
  named: tuple[str, ...] = ()
  starts: str = ''


# What is not the same, as the reports say it: a pool that is padded in two ways, one pixel apart.
_POOL = r'the port pads explicitly before a VALID MaxPool, tf1 runs it with SAME'
_POOL_ON_THE_WAY = r'MaxPool \(.*SAME\) in tf1, MaxPool \(.*VALID\) and Pad in the port'
_EPSILON = r'epsilon (to the variance where tf1 adds )?1e-05|epsilon 1e-05 in tf1, 1\.001e-05'
# Which convolution of a block has the stride.
_STRIDES = r'strides \[1, 1, 1, 1\] in tf1, \[1, 2, 2, 1\] in the port'

PAIRS = {
  'slim inception_v3 -> InceptionV3': Pair('slim_nets:InceptionV3Case'),
  'slim VGG-16 -> VGG16': Pair(
    'slim_nets:Vgg16Case', starts=r'tf1: uniform in ±0.005155\n +tf2: uniform in ±0.01434'
  ),
  # The ten variables of the auxiliary head, which the model of Keras leaves out.
  'Inception-ResNet-v2 -> InceptionResNetV2': Pair(
    'inception_resnet_v2:InceptionResnetV2Case', tf1_only=10
  ),
  'slim resnet_v2_50 -> ResNet50V2': Pair('slim_nets:ResnetV2Case', named=(_POOL, _EPSILON)),
  'slim resnet_v1_50 -> ResNet50': Pair(
    'slim_nets:ResnetV1Case',
    port_only=53,
    named=('conv1_conv/bias', _POOL_ON_THE_WAY, _EPSILON, _STRIDES),
  ),
  'DenseNet-121 -> DenseNet121': Pair('layers_nets:Densenet121Case'),
  'BERT of 2018 -> MultiHeadAttention': Pair('encoder:BertCase'),
  'GPT-2 -> MultiHeadAttention': Pair('gpt2:Gpt2Case'),
  'BasicLSTMCell, 3 stacked -> LSTM': Pair('cells:StackedLstmCase'),
  'LSTMCell, bidirectional -> LSTM': Pair('cells:BidirectionalLstmCase'),
  'LSTMCell, peepholes, projection -> RNN': Pair('cells:ProjectedLstmCase'),
  'GRUCell, 3 stacked -> GRU': Pair('cells:StackedGruCase'),
  'GRUCell, bidirectional -> GRU': Pair('cells:BidirectionalGruCase'),
  'MobileNet -> MobileNet': Pair('layers_nets:MobilenetCase'),
  'MobileNetV2 -> MobileNetV2': Pair('layers_nets:MobilenetV2Case'),
  'Xception -> Xception': Pair('layers_nets:XceptionCase'),
  'attention over a GRU -> GRU, GRUCell': Pair('others:TranslatorCase'),
  'ConvLSTM written out -> ConvLSTM2D': Pair('others:ConvLstmCase'),
  'two layers exchanged': Pair('others:ExchangedCase', named=('query/kernel.*by name',)),
}


@dataclasses.dataclass(frozen=True)
class Measured:
  """What was found of a pair."""

  variables: int
  mapped: int
  tf1_only: int
  tf2_only: int
  ambiguous: int
  absolute: float  # the greatest difference of an output
  relative: float  # that, of the greatest output
  derive: float  # seconds
  climb: float  # seconds
  passed: int  # of the six stages
  report: str

  def missed(self, pair: Pair) -> list[str]:
    """Returns which goals of a pair are missed."""
    found = []
    if (self.mapped, self.tf1_only) != (self.variables - pair.tf1_only, pair.tf1_only):
      found.append('not all mapped')
    if self.tf2_only != pair.port_only:
      found.append(f'{self.tf2_only} of the port without a partner')
    if self.ambiguous:
      found.append('ambiguous')
    is_same = self.relative <= _SAME
    if pair.named and is_same:
      found.append('the same numbers, although the models differ')
    if not pair.named and not is_same:
      found.append('other numbers')
    if not pair.named and self.passed < (3 if pair.starts else 6):
      found.append(f'stage {self.passed + 1} does not pass')
    wanted = (*pair.named, *([pair.starts] if pair.starts else []))
    found += [f'not named: {one}' for one in wanted if not re.search(one, self.report)]
    if self.derive > self.climb:
      found.append('slower than six stages')
    return found


def _case(pair: Pair) -> Any:
  module, _, name = pair.case.partition(':')
  return getattr(importlib.import_module(f'benchmarks.map_pairs.{module}'), name)


def _forward(cls: Any, variable_map: Any) -> tuple[float, float]:
  """Calls the port with TF1's values, moved through a map, and compares the outputs."""
  import numpy as np
  import tensorflow as tf

  from tf2verify.case import new_ladder
  from tf2verify.sides.fill import DistinctFill
  from tf2verify.sides.side import RunSpec

  ladder = new_ladder(cls, lambda _: None)
  try:
    case = ladder.prepared()
    variables = case.tf1.inventory().variables
    names = {v.name: v.name for v in variables}
    run = RunSpec(case.inputs, False, DistinctFill(), names)
    reference = case.tf1.inspectable(run)
    graph = reference.op_graph
    ends = {n: at for n, at in graph.targets().items() if n.startswith('output ')}
    ones = reference.refetched([graph.ops[at].tensors[0] for at in ends.values()], {})
    reference.close()
    assert ones is not None, 'the reference does not run at its own values'
    values = {v.name: run.value_for(v) for v in variables}
    port = case.declaration.make_tf2_layer()
    inputs = tf.nest.map_structure(tf.constant, case.inputs)
    port(inputs)
    moved = variable_map.to_tf2({name: values[name] for name in variable_map.tf1_names})
    for variable in port.variables:
      if variable.path in moved:
        variable.assign(moved[variable.path])
    others = tf.nest.flatten(port(inputs, training=False))
  finally:
    ladder.close()
  apart = [
    float(np.max(np.abs(np.ravel(one) - np.ravel(other))))
    for one, other in zip(ones, others, strict=True)
  ]
  return max(apart), max(
    difference / float(np.max(np.abs(one))) for difference, one in zip(apart, ones, strict=True)
  )


def measure(pair: Pair) -> Measured:
  """Derives the map of a pair and climbs through it, in this process."""
  import tf2verify
  from tf2verify.commands.variable_map import derived_of
  from tf2verify.stages import STAGES

  cls = _case(pair)
  start = time.perf_counter()
  derived = derived_of(cls, lambda _: None)
  derive = time.perf_counter() - start
  given = type(
    cls.__name__, (cls,), {'variable_map': derived.variable_map, '__module__': cls.__module__}
  )
  start = time.perf_counter()
  verdict = tf2verify.verify(given, [stage.name for stage in STAGES[:6]])
  climb = time.perf_counter() - start
  inventory = next(
    stage for stage in verdict.stages if stage.stage == 'variable_inventory'
  ).inventory
  rows = [row for row in inventory if row.remark not in ('untracked', 'the global step')]
  absolute, relative = _forward(cls, derived.variable_map)
  return Measured(
    variables=sum(row.tf1 is not None for row in rows),
    mapped=len(derived.variable_map.tf1_names),
    tf1_only=sum(row.tf2 is None for row in rows),
    tf2_only=sum(row.tf1 is None for row in rows),
    ambiguous=len(derived.ambiguous),
    absolute=absolute,
    relative=relative,
    derive=derive,
    climb=climb,
    passed=sum(stage.status is tf2verify.Status.PASSED for stage in verdict.stages[:6]),
    report='\n'.join((verdict.to_text(), derived.summary(), *derived.doubts)),
  )


def _row(name: str, found: Measured, missed: list[str]) -> str:
  cells = (
    name,
    f'{found.variables}',
    f'{found.mapped}',
    f'{found.tf1_only} / {found.tf2_only}',
    f'{found.ambiguous}',
    f'{found.absolute:.1e} ({found.relative:.1e})',
    f'{found.passed}',
    f'{found.derive:.1f} s',
    f'{found.climb:.1f} s',
    'missed: ' + '; '.join(missed) if missed else 'met',
  )
  return f'| {" | ".join(cells)} |'


def main() -> int:
  """Prints the table; with `--here NAME` the row of one pair, measured in this process."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--pairs', nargs='+', choices=PAIRS, default=list(PAIRS), metavar='NAME')
  parser.add_argument('--here', choices=PAIRS, metavar='NAME', help=argparse.SUPPRESS)
  parser.add_argument('--report', action='store_true', help='print the reports as well')
  arguments = parser.parse_args()
  if arguments.here:
    pair = PAIRS[arguments.here]
    found = measure(pair)
    missed = found.missed(pair)
    if arguments.report:
      print(found.report)
    print(_row(arguments.here, found, missed))
    return 1 if missed else 0
  print(
    '| pair | variables of TF1 | mapped | one side alone, TF1 / port | ambiguous | forward pass, '
    'greatest difference (of the greatest output) | stages passed, of 6 | derived in | six stages '
    'in | goal |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |'
  )
  failed = 0
  for name in arguments.pairs:
    command = [sys.executable, '-m', 'benchmarks.maps', '--here', name]
    command += ['--report'] if arguments.report else []
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    is_row = bool(lines) and lines[-1].startswith(f'| {name} |')
    print('\n'.join(lines if arguments.report else lines[-1:]) if is_row else f'| {name} | failed')
    if not is_row:
      print(run.stderr[-2000:], file=sys.stderr)
    sys.stdout.flush()
    failed += bool(run.returncode)
  return 1 if failed else 0


if __name__ == '__main__':
  sys.exit(main())
