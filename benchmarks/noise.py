"""Two right implementations that round differently, beside the rounding noise.

    python -m benchmarks.noise --models examples flagship

tf2verify runs the graph without Grappler, so that a right port is mostly equal bit by
bit. What stands in for the port here is the same graph in a session that rewrites it, as
sessions do by default (kernels fused, arithmetic rearranged): as right as the reference,
rounded otherwise.

The examples go through the numeric stages. The flagship compares the gradients of a
training step at seeded initial values, with the cross-entropy as its loss, as the
migration guide has it. A tolerance of zero makes a suspect of every tensor that is not
equal bit by bit.
"""

import argparse
import contextlib
import contextvars
import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

import tf2verify
from tf2verify import case as case_module
from tf2verify.errors import NotApplicable
from tf2verify.numerics.noise import RUNS, Kind, NoiseVerdict
from tf2verify.records.difference import Difference
from tf2verify.reference import inputs as case_inputs
from tf2verify.relation.names.alignment import Alignment, align
from tf2verify.sides.process import state as process_state
from tf2verify.sides.tf1 import session_runs
from tf2verify.sides.tf1.graph import Tf1Graph
from tf2verify.sides.tf2.layer import Tf2Layer
from tf2verify.stages import STAGES
from tf2verify.stages.comparison.noise import rounding
from tf2verify.stages.passes.gradients import Gradients
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

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

  def sort_out(
    self, suspects: Sequence[rounding.Suspect], rerun: Any, narrow_bits: int = 0
  ) -> rounding.Sorted:
    """Stands in for `rounding.sort_out` and keeps what that returns."""

    def counted(*arguments: Any) -> Any:
      self.runs += 1
      return rerun(*arguments)

    start = time.perf_counter()
    with mock.patch.object(rounding, 'MOST_RUNS', RUNS):  # the last bits are not worth more
      found = _SORT_OUT(suspects, counted, narrow_bits)
    self.seconds += time.perf_counter() - start
    self.judged += found.judged
    return found


_SORT_OUT = rounding.sort_out


def rewriting_session(graph: tf.Graph) -> Any:
  """Opens a session that fuses and rearranges, but folds no constants, which takes minutes."""
  config = tf.compat.v1.ConfigProto()
  options = config.graph_options.rewrite_options
  options.constant_folding = options.OFF
  options.shape_optimization = options.OFF
  options.meta_optimizer_iterations = options.ONE
  return tf.compat.v1.Session(graph=graph, config=config)


class StandIn:
  """Takes the port's place: runs what the reference has prepared, in a rewriting session."""

  def __init__(self) -> None:
    self._rewrites: contextvars.ContextVar[bool] = contextvars.ContextVar('rewrites', default=False)
    self._prepared: Any = None

  @contextlib.contextmanager
  def in_place(self) -> Iterator[None]:
    """Replaces the port of every case until exit."""
    plain, prepare_filled, prepare_seeded = (
      session_runs.open_session,
      Tf1Graph.prepare_filled,
      Tf1Graph.prepare_seeded,
    )

    def open_session(graph: tf.Graph) -> Any:
      # A thread has a context of its own: the reference beside it is not rewritten.
      return rewriting_session(graph) if self._rewrites.get() else plain(graph)

    def filled(side: Tf1Graph, runs: Any) -> Any:
      self._prepared = prepare_filled(side, runs)
      return self._prepared

    def seeded(side: Tf1Graph, mode: str, training: bool) -> Any:
      self._prepared = prepare_seeded(side, mode, training)
      return self._prepared

    def same_names(case: CaseUnderTest) -> Alignment:
      names = [variable.name for variable in case.tf1.inventory().variables]
      return align(names, names, None)

    with (
      mock.patch.object(session_runs, 'open_session', open_session),
      mock.patch.object(Tf1Graph, 'prepare_filled', filled),
      mock.patch.object(Tf1Graph, 'prepare_seeded', seeded),
      mock.patch.object(Tf2Layer, 'observe_filled', lambda side, runs: self._run()),
      mock.patch.object(Tf2Layer, 'observe_seeded', lambda side, mode, training: self._run()),
      mock.patch.object(CaseUnderTest, 'alignment', same_names),
    ):
      yield

  def _run(self) -> Any:
    token = self._rewrites.set(True)
    try:
      return self._prepared()
    finally:
      self._rewrites.reset(token)


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


def flagship_gradients(ones: bool, tolerance: Any) -> tuple[Measured, Findings]:
  """Compares the gradients of a training step, at the inputs as they are."""

  class Case(flagship(ones)):  # type: ignore[misc]
    gradient_tolerance = tolerance

  ladder = case_module.new_ladder(Case, lambda step: None)
  try:
    with mock.patch.object(case_inputs, 'varied_inputs', lambda inputs: (inputs, ())):
      measured = Measured()
      with mock.patch.object(rounding, 'sort_out', measured.sort_out):
        findings = findings_of(ladder, Gradients)
  finally:
    ladder.close()
  return measured, findings


def findings_of(ladder: Any, stage: type[Stage]) -> Findings:
  """Returns what a stage finds, whatever the ones before found, and without a diagnosis."""
  with process_state.preserved():
    return stage().check(ladder.prepared())


def example_cases() -> list[type[tf2verify.EquivalenceCase]]:
  """Returns the right ports among the examples."""
  from examples.gan.equivalence_test import GanCase
  from examples.inception_v3.equivalence_test import InceptionV3Case
  from examples.language_model.equivalence_test import GruLanguageModelCase, LstmLanguageModelCase
  from examples.layers_conv_net.equivalence_test import LayersConvNetCase
  from examples.resnet_v2.equivalence_test import ResnetV2Case
  from examples.transformer_block.equivalence_test import TransformerBlockCase

  return [
    GanCase,
    InceptionV3Case,
    GruLanguageModelCase,
    LstmLanguageModelCase,
    LayersConvNetCase,
    ResnetV2Case,
    TransformerBlockCase,
  ]


def example(declared: type[tf2verify.EquivalenceCase], exact: bool) -> Measured:
  """Runs the numeric stages, each whatever the ones before found."""
  if exact:
    attributes = ('tolerance', 'gradient_tolerance', 'regularization_tolerance')
    declared = type(declared.__name__, (declared,), dict.fromkeys(attributes, _EXACT))
  measured = Measured()
  with mock.patch.object(rounding, 'sort_out', measured.sort_out):
    ladder = case_module.new_ladder(declared, lambda step: None)
    for stage in STAGES[2:]:
      with contextlib.suppress(NotApplicable):  # it declares no losses, say
        findings_of(ladder, stage)
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
  with StandIn().in_place():
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
          measured, findings = flagship_gradients(ones, tolerance)
          print(row(f'flagship, gradients, {image}, {title}', measured), flush=True)
          _print_details(measured, arguments.details)
          if tolerance is None:
            print(*findings.notes, sep='\n', file=sys.stderr, flush=True)
            missed |= bool(findings.differences)
            missed |= not ones and findings.compared.inconclusive > 0
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
