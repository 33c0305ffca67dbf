"""Rung 11: each side, repeated in fresh state, gives the same bits."""

import dataclasses
import gc
import math
from collections.abc import Sequence

from tf2verify.diagnosis.causes import first_cause
from tf2verify.diagnosis.evidence.variation import VaryingOperation
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.races import PROGRAM, unordered
from tf2verify.records.repetition import FirstVariation, Variation
from tf2verify.records.table import Table
from tf2verify.records.verdict import Compared
from tf2verify.sides.repetition import gpu_kernels, repeating
from tf2verify.stages.repetition import fresh_processes
from tf2verify.stages.repetition.repetition import Repeater, SideRepetitions
from tf2verify.stages.stage import CaseUnderTest, Findings, Stage

_SWITCH = 'tf.config.experimental.enable_op_determinism()'


class Determinism(Stage):
  """Runs each side several times from its start and compares bit by bit."""

  name = 'determinism'
  needs = ('no_new_variables',)
  proves = 'each side, repeated in fresh state, gives the same bits'
  repeats_errors_of = ('variable_inventory', 'zero_randomness', 'seeded_constant', 'gradients')
  diagnosed = False
  compares_sides = False

  def check(self, case: CaseUnderTest) -> Findings:
    """Compares each side with itself; a reference that varies is not the port's fault."""
    case.tf2.release()
    repeater = Repeater.of(case)
    tf1 = repeater.tf1()
    gc.collect()
    tf2 = repeater.tf2()
    across = fresh_processes.repeated(case, tf1.digests, tf2.digests)
    blind_spots = [*_gpu_blind_spots(tf2), *_refusals(tf2), *across.blind_spots]
    for repetitions in (tf1, tf2):
      if repetitions.not_repeated:
        blind_spots.append(
          f'training steps of {repetitions.side} were not repeated: {repetitions.not_repeated}'
        )
    notes = [*_switched(tf2), *_other_bits(tf2), *across.notes]
    tf1_varies = [*tf1.varying, *across.tf1]
    tf2_varies = [*tf2.varying, *across.tf2]
    inconclusive = ''
    differences: tuple[Difference, ...] = ()
    varying = *tf1_varies, *tf2_varies
    is_known = tf1.first is not None or tf2.first is not None
    if tf1_varies and not is_known and all(known.is_rounding for known in varying):
      blind_spots.append(_rounds(tf1_varies, tf2_varies))
    elif tf1_varies:
      inconclusive = _reference_varies(tf1_varies)
      notes.insert(0, _cause('the first to vary on the tf1 side', tf1, across.cause))
      if tf2_varies:
        notes.insert(1, _cause('the port varies, too; the first to vary', tf2, across.cause))
    else:
      differences = tuple(_difference(v, tf1, tf2, across) for v in tf2_varies)
      if tf1.races:
        blind_spots.append(_other_in_other_orders(tf1) or _race_without_effect(tf1))
    return Findings(
      Compared(
        tf1.tensors + tf2.tensors, tf1.elements + tf2.elements, blind_spots=len(blind_spots)
      ),
      differences,
      (*blind_spots, *notes),
      inconclusive,
      tables=_tables(tf1_varies, tf2_varies) if inconclusive else (),
      blind_spots=tuple(blind_spots),
    )


def _reference_varies(varying: Sequence[Variation]) -> str:
  worst = max(varying, key=_amount)
  return (
    f'the TF1 side is not deterministic, which is not the fault of the port: {_count(varying)}, '
    'most '
    f'{worst}: {_size(worst)}; no port can be closer to it than that'
  )


def _rounds(tf1: Sequence[Variation], tf2: Sequence[Variation]) -> str:
  """Returns that the reference, and maybe the port, repeats itself up to rounding only."""
  worst = max(tf1, key=_amount)
  port = f'; of the port {_count(tf2)} so, too' if tf2 else ''
  return (
    'the TF1 side repeats itself up to rounding only, which is not the fault of the port: '
    f'{_count(tf1)}, most {worst}: {_size(worst)}, where the greatest element is '
    f'{worst.greatest:.3g}; no operation does so when each is looked at: a sum of several tensors '
    f'(AddN) may take them in another order each time{port}'
  )


def _other_in_other_orders(tf1: SideRepetitions) -> str:
  """Returns that the reference may not repeat itself, since it races; '' where that is the same."""
  if not tf1.by_order:
    return ''
  order, varying = tf1.by_order[0]
  worst = max(varying, key=_amount)
  count = f'{len(varying)} tensors differ' if len(varying) > 1 else '1 tensor differs'
  return (
    'the TF1 side may not repeat itself, which is not the fault of the port: '
    f'{unordered(tf1.races)}. Run {order}, {count} from a run {PROGRAM}, most {worst}: '
    f'{_size(worst, "from order to order")}; order them with tf.control_dependencies'
  )


def _race_without_effect(tf1: SideRepetitions) -> str:
  if tf1.is_recorded:
    return (
      f'{unordered(tf1.races)}; the recorder ran it twice with the same outcome, perhaps by chance'
    )
  return f'{unordered(tf1.races)}; the orders that were tried give the same bits'


def _count(varying: Sequence[Variation]) -> str:
  return f'{len(varying)} tensors vary' if len(varying) > 1 else '1 tensor varies'


def _amount(variation: Variation) -> float:
  amount = variation.greatest_absolute
  return amount if amount == amount else 0.0


def _cause(head: str, side: SideRepetitions, across: str) -> str:
  first = with_cause(side.first)
  if first is not None:
    return f'{head}: {first}'
  if side.races:
    return f'{head}: {unordered(side.races)}'
  if not side.varying and across:
    return f'{head}: {across}'
  return f'{head}: not found; no operation varies when each is looked at'


def with_cause(first: FirstVariation | None) -> FirstVariation | None:
  """Returns the first operation that varies with its known cause; as it was without one."""
  if first is None or first.why:
    return first
  return dataclasses.replace(first, why=first_cause(VaryingOperation(first.op_type)))


def _difference(
  variation: Variation,
  tf1: SideRepetitions,
  tf2: SideRepetitions,
  across: fresh_processes.AcrossProcesses,
) -> Difference:
  runs = tf1.runs if variation in tf2.varying else across.processes
  where = 'runs' if variation in tf2.varying else 'processes'
  first = with_cause(tf2.first)
  hint = across.cause
  if variation in tf2.varying:
    hint = '' if first is None else f'the first to vary: {first}'
  return Difference.of(
    variation.key,
    Aspect.REPETITION,
    f'the same bits in {runs} {where}' if variation in tf2.varying else 'the same bits',
    _size(variation),
    hint=hint,
  )


def _size(variation: Variation, between: str = 'from run to run') -> str:
  if variation.other:
    return variation.other
  text = f'{variation.share} elements differ {between}'
  if math.isnan(variation.greatest_absolute):
    return text
  return (
    f'{text}, by up to {variation.greatest_absolute:.3g} (relative '
    f'{variation.greatest_relative:.3g})'
  )


def _tables(tf1: Sequence[Variation], tf2: Sequence[Variation]) -> tuple[Table, ...]:
  rows = [
    (
      side,
      str(variation),
      variation.share,
      f'{variation.greatest_absolute:.3g}',
      f'{variation.greatest_relative:.3g}',
    )
    for side, variations in (('tf1', tf1), ('tf2', tf2))
    for variation in variations
  ]
  columns = ('side', 'tensor', 'elements', 'max absolute difference', 'max relative difference')
  return (Table('different bits from run to run', columns, tuple(rows)),) if rows else ()


def _gpu_blind_spots(tf2: SideRepetitions) -> list[str]:
  """Returns the port's operations of which no deterministic kernel exists on a GPU, a note each."""
  if 'GPU' in repeating.devices():
    return []
  return [
    f'not run on a GPU, where {gpu_kernels.described(kernel, tf2.sources)} of the port has no '
    f'deterministic kernel and {_SWITCH} makes it raise: {kernel.remedy}'
    for kernel in gpu_kernels.kernels_in(tf2.sources)
    if kernel.remedy
  ]


def _switched(tf2: SideRepetitions) -> list[str]:
  if 'GPU' in repeating.devices():
    return []
  known = gpu_kernels.kernels_in(tf2.sources)
  found = [kernel.op_type for kernel in known if not kernel.remedy]
  if not found:
    return []
  verb = 'repeats' if len(found) == 1 else 'repeat'
  return [f'run on the CPU; on a GPU {", ".join(found)} {verb} only with {_SWITCH}']


def _refusals(tf2: SideRepetitions) -> list[str]:
  if not tf2.refused:
    return []
  return [f'with {_SWITCH} the port does not run: {tf2.refused}']


def _other_bits(tf2: SideRepetitions) -> list[str]:
  if not tf2.other_bits:
    return []
  worst = max(tf2.other_bits, key=_amount)
  return [
    f'with {_SWITCH} {len(tf2.other_bits)} tensor{"s" * (len(tf2.other_bits) > 1)} of the port '
    f'have different bits, most {worst}, by up to {worst.greatest_absolute:.3g}'
  ]
