"""Differences between right ports and their references, beside the rounding noise.

    python -m benchmarks.noise --models flagship examples

tf2verify runs the graph without Grappler, so that a right port is mostly equal bit by
bit. Here the sessions rewrite the graph, as they do by default: fused kernels, folded
constants. That is a reference which rounds otherwise than the port and is right.

Every example climbs the ladder; the flagship compares the gradients of a training step
at seeded initial values, as the migration guide has it. A tolerance of zero makes every
tensor a suspect that is not equal bit by bit.
"""

import argparse
import dataclasses
import sys
import time
from collections.abc import Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import tf2verify
from tf2verify import case as case_module
from tf2verify.compare.noise import Kind, NoiseVerdict
from tf2verify.records.difference import Difference
from tf2verify.records.verdict import StageVerdict
from tf2verify.sides import inputs as case_inputs
from tf2verify.sides import tf1_graph
from tf2verify.stages import STAGES, rounding
from tf2verify.stages.gradients import Gradients

_EXACT = tf2verify.Tolerance(rtol=0.0, atol=0.0)
_Judged = list[tuple[Difference, NoiseVerdict]]


@dataclasses.dataclass
class Measured:
  """What the noise of one case's runs was.

  Attributes:
    judged: each difference with its verdict.
    seconds: of the moved runs.
    runs: how many there were.
  """

  judged: _Judged = dataclasses.field(default_factory=list)
  seconds: float = 0.0
  runs: int = 0

  def sort_out(self, suspects: Sequence[rounding.Suspect], rerun: Any) -> rounding.Sorted:
    """Stands in for `rounding.sort_out` and keeps what that returns."""

    def counted(*arguments: Any) -> Any:
      self.runs += 1
      return rerun(*arguments)

    start = time.perf_counter()
    found = _SORT_OUT(suspects, counted)
    self.seconds += time.perf_counter() - start
    self.judged += found.judged
    return found


_SORT_OUT = rounding.sort_out


def rewriting_session(graph: tf.Graph) -> Any:
  """Opens a session with TensorFlow's defaults."""
  return tf.compat.v1.Session(graph=graph)


def flagship(ones: bool) -> type[tf2verify.EquivalenceCase]:
  """Returns Inception-ResNet-v2 at full size with seeded initial values and a real loss."""
  from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase

  class Case(InceptionResnetV2FullSizeCase):
    def make_inputs(self) -> np.ndarray:
      return np.ones(self.image_shape, np.float32) if ones else super().make_inputs()

    def fill_values(self, name: str, shape: Any, dtype: Any) -> None:
      return None

    def loss(self, outputs: Any) -> tf.Tensor:
      heads = (outputs[0], outputs[1]['AuxLogits'])
      return tf.add_n([-tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0]) for logits in heads])

  return Case


def flagship_gradients(ones: bool, tolerance: Any) -> tuple[Measured, StageVerdict]:
  """Compares the gradients of a training step, at the inputs as they are."""

  class Case(flagship(ones)):  # type: ignore[misc]
    gradient_tolerance = tolerance

  ladder = case_module.new_ladder(Case, lambda step: None)
  try:
    with mock.patch.object(case_inputs, 'varied_inputs', lambda inputs: (inputs, ())):
      measured = Measured()
      with mock.patch.object(rounding, 'sort_out', measured.sort_out):
        verdict = ladder._run(Gradients, STAGES.index(Gradients) + 1)
  finally:
    ladder.close()
  return measured, verdict


def example_cases() -> list[type[tf2verify.EquivalenceCase]]:
  """Returns the right ports among the examples."""
  from examples.gan.equivalence_test import GanCase
  from examples.inception_resnet_v2.equivalence_test import InceptionResnetV2Case
  from examples.inception_v3.equivalence_test import InceptionV3Case
  from examples.language_model.equivalence_test import GruLanguageModelCase, LstmLanguageModelCase
  from examples.layers_conv_net.equivalence_test import LayersConvNetCase
  from examples.resnet_v2.equivalence_test import ResnetV2Case
  from examples.transformer_block.equivalence_test import TransformerBlockCase

  return [
    GanCase,
    InceptionResnetV2Case,
    InceptionV3Case,
    GruLanguageModelCase,
    LstmLanguageModelCase,
    LayersConvNetCase,
    ResnetV2Case,
    TransformerBlockCase,
  ]


def example(declared: type[tf2verify.EquivalenceCase], exact: bool) -> Measured:
  """Climbs the ladder, every stage whatever the ones before found."""
  if exact:
    attributes = ('tolerance', 'gradient_tolerance', 'regularization_tolerance')
    declared = type(declared.__name__, (declared,), dict.fromkeys(attributes, _EXACT))
  measured = Measured()
  with mock.patch.object(rounding, 'sort_out', measured.sort_out):
    ladder = case_module.new_ladder(declared, lambda step: None)
    for number, stage in enumerate(STAGES, 1):
      verdict = ladder._run(stage, number)
      if verdict.error is not None:
        raise SystemExit(verdict.to_text())
    ladder.close()
  return measured


def row(title: str, measured: Measured) -> str:
  """Returns a line of the table."""
  counts = {kind: sum(v.kind is kind for _, v in measured.judged) for kind in Kind}
  known = [v for _, v in measured.judged if v.noise > 0]
  ratios = sorted(v.difference / v.noise for v in known)
  shares = sorted(v.noise / v.size for v in known if v.size)
  by_element = sum(v.index >= 0 for _, v in measured.judged)
  return (
    f'| {title} | {len(measured.judged)} | {_at(ratios, 0.5)} | {_at(ratios, 0.99)} | '
    f'{_at(ratios, 1)} | {by_element} | {_at(shares, 0.5)} | {_at(shares, 1)} | '
    f'{counts[Kind.ROUNDING]} / {counts[Kind.DEGENERATE]} / {counts[Kind.DIFFERENT]} | '
    f'{measured.runs} runs, {measured.seconds:.1f} s |'
  )


def _at(values: Sequence[float], share: float) -> str:
  return f'{values[round(share * (len(values) - 1))]:.2g}' if values else ''


def main() -> int:
  """Prints the table; returns 1 when a target of the flagship is missed."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--models', nargs='+', default=['examples', 'flagship'])
  parser.add_argument('--details', action='store_true', help='the differences one by one')
  arguments = parser.parse_args()
  missed = False
  print(
    '| case, tolerance | tensors | difference / noise: median | 99 % | greatest | an element ',
    end='',
  )
  print(
    'beyond its own | noise / size: median | greatest | rounding / degenerate / different | cost |'
  )
  print('| --- ' * 10 + '|')
  with mock.patch.object(tf1_graph, 'open_session', rewriting_session):
    if 'examples' in arguments.models:
      for declared in example_cases():
        for title, exact in (('0', True), ('default', False)):
          measured = example(declared, exact)
          print(row(f'{declared.__name__}, {title}', measured), flush=True)
          _print_details(measured, arguments.details)
    if 'flagship' in arguments.models:
      for ones in (True, False):
        image = 'ones' if ones else 'random image'
        for title, tolerance in (('default', None), ('0', _EXACT)):
          measured, verdict = flagship_gradients(ones, tolerance)
          print(row(f'flagship, gradients, {image}, {title}', measured), flush=True)
          _print_details(measured, arguments.details)
          if tolerance is None:
            print(verdict.to_text(), file=sys.stderr, flush=True)
            missed |= verdict.status is not tf2verify.Status.PASSED
            missed |= not ones and verdict.compared.inconclusive > 0
  return int(missed)


def _print_details(measured: Measured, wanted: bool) -> None:
  for difference, v in measured.judged if wanted else ():
    print(
      f'  {v.kind.value} {difference.quantity} {difference.subject} [{difference.run}] '
      f'difference {v.difference:.3g} noise {v.noise:.3g} size {v.size:.3g} '
      f'element {v.index} {v.index_noise:.3g}'
    )


if __name__ == '__main__':
  sys.exit(main())
