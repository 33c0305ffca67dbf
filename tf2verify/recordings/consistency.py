"""Whether what a manifest says fits together."""

import math
from collections.abc import Iterable

from tf2verify.numerics import sampling
from tf2verify.recordings.array_entries import (
  ArrayEntry,
  Nest,
  TensorEntry,
  Tensors,
)
from tf2verify.recordings.fields import Malformed
from tf2verify.recordings.graph_entries import DrawEntry, GraphEntry, VariableEntry
from tf2verify.recordings.manifest_entries import Manifest
from tf2verify.recordings.run_entries import FilledEntry, RunEntry, SeededEntry
from tf2verify.recordings.training_entries import AloneEntry, LossesEntry, SlotEntry, StepsEntry
from tf2verify.reference.sampling import BLOCK

_CAN_BE_SAMPLED = ('float16', 'bfloat16', 'float32', 'float64', 'complex64', 'complex128')


def check_references(manifest: Manifest) -> None:
  """Checks that arrays exist and fit what refers to them.

  Raises:
    Malformed: something refers to nothing, or to what has another shape or dtype.
  """
  _check_arrays(manifest.arrays)
  check = _References(manifest)
  check.nest(manifest.inputs, '.inputs')
  check.nest(manifest.varied_inputs, '.varied_inputs')
  if manifest.labels is not None:
    check.nest(manifest.labels, '.labels')
  for n, found in enumerate(manifest.graphs):
    check.graph(found, f'.graphs[{n}]')
  modes = [found.training for found in manifest.graphs]
  if sorted(modes) != sorted(set(manifest.training_modes)) or len(set(modes)) != len(modes):
    raise Malformed('are not one for each of the training modes', '.graphs')
  if not modes or len(manifest.training_modes) != len(modes):
    raise Malformed('is empty, or has one twice', '.training_modes')
  for n, run in enumerate(manifest.runs):
    check.run(run, f'.runs[{n}]')
  _check_distinct(manifest.runs)
  if manifest.losses is not None:
    check.losses(manifest.losses)
  if manifest.steps is not None:
    if manifest.losses is None:
      raise Malformed('are there, but no losses', '.steps')
    check.steps(manifest.steps, manifest.losses)
  check.intermediates()


def _check_arrays(arrays: dict[str, ArrayEntry]) -> None:
  places = set()
  for name, entry in arrays.items():
    where = f'.arrays.{name}'
    if (entry.file, entry.key) in places:
      raise Malformed('is stored at the place of a different array', where)
    places.add((entry.file, entry.key))
    encodings = {'bfloat16': 'bfloat16', 'string': 'string'}
    if entry.encoding != encodings.get(entry.dtype, 'plain'):
      raise Malformed(f'has encoding {entry.encoding} for dtype {entry.dtype}', where)
    how = entry.sampled
    if how is None:
      continue
    size = math.prod(how.shape)
    if entry.dtype not in _CAN_BE_SAMPLED or how.block not in (0, BLOCK):
      raise Malformed(f'is sampled as no {entry.dtype} array is', where)
    if not how.samples or entry.shape != (sampling.stored_size(size, how.samples, how.block),):
      raise Malformed(
        f'has shape {entry.shape}, which {how.samples} samples and blocks of {how.block} of shape '
        f'{how.shape} '
        f'do not have',
        where,
      )


def _check_distinct(runs: Iterable[RunEntry]) -> None:
  seen = set()
  for n, run in enumerate(runs):
    key: tuple[object, ...]
    if isinstance(run, FilledEntry):
      key = (run.training, run.fill, run.inputs, run.with_gradients)
    else:
      key = (run.training, run.mode)
    if key in seen:
      raise Malformed('is a run that was there before', f'.runs[{n}]')
    seen.add(key)


class _References:
  """Checks the parts of a manifest against its arrays and graphs."""

  def __init__(self, manifest: Manifest) -> None:
    self._manifest = manifest
    self._arrays = manifest.arrays

  def nest(self, found: Nest, where: str) -> None:
    """Checks that the arrays of a nest are there, and whole."""
    for name in found.arrays():
      if self._array(name, where).sampled is not None:
        raise Malformed(f'has the sampled array {name}', where)

  def graph(self, found: GraphEntry, where: str) -> None:
    """Checks what a graph refers to."""
    for name in (found.graph_def, found.constant_graph_def):
      if name is not None:
        self._bytes(name, where)
    lines = self._array(found.op_sources, where)
    if lines.dtype != 'int32' or len(lines.shape) != 1:
      raise Malformed('has op_sources that are not an int32 vector', where)
    names = [variable.name for variable in found.variables]
    if len(set(names)) != len(names):
      raise Malformed('has a variable twice', where)
    sources = len(found.sources)
    self._check_sources((*found.variables, *found.random_draws), sources, where)
    for gradient in found.gradients:
      if gradient.variable not in names:
        raise Malformed(f'has a gradient of the unknown variable {gradient.variable!a}', where)

  def _check_sources(
    self, entries: Iterable[VariableEntry | DrawEntry], sources: int, where: str
  ) -> None:
    for entry in entries:
      if entry.source is not None and entry.source >= sources:
        raise Malformed('refers to a source line that is not there', where)

  def run(self, found: RunEntry, where: str) -> None:
    """Checks a run against the graph of its training mode."""
    graph = self._manifest.graph(found.training)
    if graph is None:
      raise Malformed('is of a training mode without a graph', where)
    if [path for path, _ in found.outputs] != [path for path, _ in graph.outputs]:
      raise Malformed('has other outputs than its graph', where)
    for _, tensor in found.outputs:
      self._tensor(tensor, where)
    losses = [names for names, _ in found.regularization_losses]
    if losses != [names for names, _ in graph.regularization_losses]:
      raise Malformed('has other regularization losses than its graph', where)
    for _, tensor in found.regularization_losses:
      self._tensor(tensor, where)
    self._tensor(found.regularization_total, where)
    shapes = {variable.name: variable for variable in graph.variables}
    for tensors in (found.initial_values, found.state_after, found.gradients):
      self._of_variables(tensors, shapes, where)
    if isinstance(found, SeededEntry) and found.gradients:
      raise Malformed('is a seeded run with gradients', where)

  def losses(self, found: LossesEntry) -> None:
    """Checks losses in the model and alone."""
    where = '.losses'
    self.graph(found.graph, f'{where}.graph')
    self.nest(found.output_nest, f'{where}.output_nest')
    if found.training not in self._manifest.training_modes:
      raise Malformed('is of a training mode without a graph', where)
    values = found.observation
    for tensor in (values.loss, values.total_loss, values.regularization_total):
      self._tensor(tensor, f'{where}.observation')
    for name, alone in (('alone', found.alone), ('alone_one', found.alone_one)):
      if alone is not None:
        self._alone(alone, f'{where}.{name}')

  def _alone(self, found: AloneEntry, where: str) -> None:
    self._bytes(found.graph_def, where)
    self._tensor(found.value, where)
    for _, tensor in found.gradient_values:
      self._tensor(tensor, where)

  def steps(self, found: StepsEntry, losses: LossesEntry) -> None:
    """Checks training steps against the graph that they are of."""
    model = {variable.name: variable for variable in losses.graph.variables}
    added = {variable.name: variable for variable in found.added}
    sources = len(losses.graph.sources)
    self._check_sources((*found.added, *found.random_draws), sources, '.steps')
    for gradient in (*found.gradients, *found.applied_gradients):
      if gradient.variable not in model:
        raise Malformed(f'have a gradient of the unknown variable {gradient.variable!a}', '.steps')
    if found.global_step is not None and found.global_step not in {**model, **added}:
      raise Malformed('has an unknown variable as its global step', '.steps')
    self._of_variables(found.values_before, model, '.steps.values_before')
    self._slots(found.slots_before, {**model, **added}, '.steps.slots_before')
    self._tensor(found.regularization_total, '.steps')
    if [step.number for step in found.steps] != list(range(1, len(found.steps) + 1)):
      raise Malformed('are not counted from 1 on', '.steps.steps')
    for n, step in enumerate(found.steps):
      where = f'.steps.steps[{n}]'
      self._tensor(step.loss, where)
      for tensors in (step.gradients, step.applied_gradients, step.variables):
        self._of_variables(tensors, model, where)
      self._slots(step.slots, {**model, **added}, where)

  def _slots(
    self, slots: Iterable[SlotEntry], variables: dict[str, VariableEntry], where: str
  ) -> None:
    for slot in slots:
      if slot.name in variables:
        self._of_variables(((slot.name, slot.value),), variables, where)
      else:
        self._tensor(slot.value, where)

  def intermediates(self) -> None:
    """Checks that intermediate tensors are of runs, and their arrays there."""
    for n, found in enumerate(self._manifest.intermediates.runs):
      where = f'.intermediates.runs[{n}]'
      if found.run >= len(self._manifest.runs):
        raise Malformed('is of a run that is not there', where)
      for _, name in found.tensors:
        self._array(name, where)

  def _array(self, name: str, where: str) -> ArrayEntry:
    if name not in self._arrays:
      raise Malformed(f'refers to the array {name}, which is not there', where)
    return self._arrays[name]

  def _bytes(self, name: str, where: str) -> None:
    entry = self._array(name, where)
    if entry.dtype != 'uint8' or len(entry.shape) != 1:
      raise Malformed(f'has {name}, which is not a vector of bytes, as a graph', where)

  def _tensor(self, found: TensorEntry | None, where: str) -> None:
    if found is None:
      return
    value = self._array(found.value, where)
    if found.noise is None:
      return
    noise = self._array(found.noise, where)
    if (noise.dtype, noise.sampled) != ('uint8', None) or noise.shape != value.shape:
      raise Malformed(f'has noise {found.noise} that does not fit {found.value}', where)
    if value.dtype not in _CAN_BE_SAMPLED:
      raise Malformed(f'has noise of {found.value}, which is not floating', where)

  def _of_variables(
    self, tensors: Tensors, variables: dict[str, VariableEntry], where: str
  ) -> None:
    for name, tensor in tensors:
      self._tensor(tensor, where)
      if name not in variables:
        raise Malformed(f'has a tensor of the unknown variable {name!a}', where)
      if tensor is None:
        continue
      entry, variable = self._arrays[tensor.value], variables[name]
      if entry.dtype != _dtype_of(variable) or not _fits(entry.full_shape, variable.shape):
        raise Malformed(
          f'has a tensor of {name!a} of shape {entry.full_shape} and dtype {entry.dtype}, the '
          f'variable has {variable.shape} and {variable.dtype!a}',
          where,
        )


def _dtype_of(variable: VariableEntry) -> str:
  return 'string' if variable.dtype in ('str', 'object', 'string') else variable.dtype


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
  if wanted == (None,):  # what an inventory says of an unknown rank
    return True
  return len(shape) == len(wanted) and all(
    other in (None, size) for size, other in zip(shape, wanted, strict=True)
  )
