"""What `python -m tf2verify recording` prints, without TensorFlow."""

from collections.abc import Iterable, Mapping, Sequence

from tf2verify.recordings.array_entries import Nest, TensorEntry
from tf2verify.recordings.manifest_entries import Manifest
from tf2verify.recordings.recording import Recording
from tf2verify.recordings.run_entries import FilledEntry, RunEntry, SeededEntry
from tf2verify.records.wording import listed
from tf2verify.safe_text import safe_line

_NAMES = {'tensorflow': 'TensorFlow', 'python': 'Python', 'numpy': 'numpy', 'onednn': 'oneDNN'}
_MODES = {False: 'inference', True: 'training'}


def recording_text(path: str) -> str:
  """Returns what a recording holds, after every array of it has been verified.

  Args:
    path: of its folder.

  Raises:
    RecordingError: it is damaged, or no recording that this tf2verify reads.
  """
  with Recording.open(path) as recording:
    recording.check()
    rows = _rows(recording)
    others = recording.other_files()
  lines = [f'{safe_line(path)}: a complete recording, every array as recorded', *_aligned(rows)]
  if others:
    shown = safe_line(', '.join(others[:5])) + (', …' if len(others) > 5 else '')
    lines.append(f'  not part of it: {shown}')
  return '\n'.join(lines)


def _rows(recording: Recording) -> list[tuple[str, str]]:
  manifest = recording.manifest
  return [
    ('made', manifest.made),
    ('by', _environment_text(manifest.environment)),
    ('builder', manifest.builder.name),
    *[('', f'{file.path}, sha256 {file.sha256[:12]}…') for file in manifest.builder.sources],
    ('training modes', ', '.join(_MODES[mode] for mode in manifest.training_modes)),
    *_model_rows(manifest),
    ('inputs', _nest_text(manifest, manifest.inputs)),
    *([('labels', _nest_text(manifest, manifest.labels))] if manifest.labels else []),
    *_size_rows(recording),
    ('intermediates', _intermediates_text(manifest)),
    *_stage_rows(manifest),
  ]


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
  width = max(len(name) for name, _ in rows)
  return [f'  {name.ljust(width)}  {safe_line(text)}'.rstrip() for name, text in rows]


def _environment_text(environment: Mapping[str, str]) -> str:
  """Returns names and versions, TensorFlow and Python first."""
  first = [name for name in _NAMES if name in environment]
  others = sorted(environment.keys() - set(first))
  return ', '.join(f'{_NAMES.get(name, name)} {environment[name]}' for name in (*first, *others))


def _model_rows(manifest: Manifest) -> list[tuple[str, str]]:
  rows = []
  for graph in manifest.graphs:
    draws = sum(draw.variable is None for draw in graph.random_draws)
    rows.append(
      (
        f'graph, {_MODES[graph.training]}',
        f'{_counted(len(graph.variables), "variable")}, {_counted(len(graph.outputs), "output")}, '
        f'{_counted(len(graph.update_ops), "update op")}, '
        f'{_counted(draws, "random op")} in addition to initial values',
      )
    )
  return rows


def _nest_text(manifest: Manifest, nest: Nest) -> str:
  entries = [manifest.arrays[name] for name in nest.arrays()]
  return listed([f'{entry.shape} {entry.dtype}' for entry in entries], most=4)


def _size_rows(recording: Recording) -> list[tuple[str, str]]:
  arrays = recording.manifest.arrays.values()
  files = recording.files
  whole = [entry for entry in arrays if entry.sampled is None]
  rows = [
    (
      'size',
      f'{_counted(len(arrays), "array")} in {_counted(len(files), "file")} of '
      f'{sum(size for _, size in files):,} bytes',
    )
  ]
  if len(whole) < len(arrays):
    text = f'{_counted(len(arrays) - len(whole), "large array")} by samples and signed means'
    rows.append(('', text))
  return rows


def _intermediates_text(manifest: Manifest) -> str:
  found = manifest.intermediates
  if found.level == 'none':
    return 'none (record with --intermediates summary or full for them)'
  tensors = sum(len(run.tensors) for run in found.runs)
  return f'{found.level}: {_counted(tensors, "tensor")} of {_counted(len(found.runs), "run")}'


def _stage_rows(manifest: Manifest) -> list[tuple[str, str]]:
  filled = [run for run in manifest.runs if isinstance(run, FilledEntry)]
  seeded = [run for run in manifest.runs if isinstance(run, SeededEntry)]
  rows = [
    ('variable_inventory', 'yes'),
    ('zero_randomness', _runs_text([run for run in filled if not run.with_gradients])),
    *[
      (f'seeded_{mode}', _runs_text([run for run in seeded if run.mode == mode]))
      for mode in ('constant', 'num_random_ops')
    ],
    ('gradients', _runs_text([run for run in filled if run.with_gradients])),
  ]
  losses, steps, checkpoint = manifest.losses, manifest.steps, manifest.checkpoint
  rows.append(
    ('loss', 'no: record with --loss')
    if losses is None
    else ('loss', f'{losses.run}; {_noise_text(losses.noise_runs)}')
  )
  if steps is None:
    rows.append(('training_steps', 'no: record with --optimizer or --train_op'))
  else:
    names = ', '.join(optimizer.name for optimizer in steps.optimizers) or 'a custom train op'
    rows.append(
      (
        'training_steps',
        f'{_counted(len(steps.steps), "step")} of {names}; {_noise_text(steps.noise_runs)}',
      )
    )
  if checkpoint is None:
    rows.append(('checkpoint', 'no: record with --checkpoint for one that exists'))
  else:
    rows.append(('checkpoint', f'{checkpoint.path}, {_counted(len(checkpoint.keys), "key")}'))
  return [('data for', ''), *[(f'  {name}', text) for name, text in rows]]


def _runs_text(runs: Sequence[RunEntry]) -> str:
  if not runs:
    return 'no'
  named = []
  for run in runs:
    mode = _MODES[run.training]
    named.append(f'{mode}, {run.fill}' if isinstance(run, FilledEntry) else mode)
  text = f'{"; ".join(named)}; {_noise_text(min(run.noise_runs for run in runs))}'
  unstable = sum(not entry.repeats for run in runs for entry in _tensors(run))
  return text + (f'; {_counted(unstable, "tensor")} did not repeat' if unstable else '')


def _tensors(run: RunEntry) -> Iterable[TensorEntry]:
  named = (*run.outputs, *run.initial_values, *run.state_after, *run.gradients)
  found = [entry for _, entry in named]
  found += [entry for _, entry in run.regularization_losses]
  return [entry for entry in (*found, run.regularization_total) if entry is not None]


def _noise_text(runs: int) -> str:
  return f'noise of {_counted(runs, "perturbed run")}' if runs else 'noise not measured'


def _counted(count: int, noun: str) -> str:
  return f'{count:,} {noun}{"" if count == 1 else "s"}'
