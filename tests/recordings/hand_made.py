"""A small recording with a bit of everything, written as docs/recordings.md says."""

import hashlib
import json
import pathlib

import numpy as np

from tf2verify.numerics.sampling import sampled
from tf2verify.reference import noise_codes

LARGE = (300, 250)
MANIFEST = 'manifest.json'


def canonical(fields):
  """Returns the bytes that the manifest's digest is of."""
  text = json.dumps(fields, sort_keys=True, separators=(',', ':'), ensure_ascii=False)
  return text.encode()


def signed(manifest):
  """Returns the bytes of a manifest with the digest that its fields have."""
  fields = {name: value for name, value in manifest.items() if name != 'sha256'}
  return canonical({**fields, 'sha256': hashlib.sha256(canonical(fields)).hexdigest()})


def sha256(name, shape, data):
  """Returns the digest of an array, by the words of the documentation."""
  sizes = ','.join(str(size) for size in shape)
  return hashlib.sha256(f'{name}|{sizes}|'.encode() + data).hexdigest()


class Arrays:
  """Arrays on their way into .npz files."""

  def __init__(self):
    self.entries = {}
    self.files = {}

  def add(self, value, file='arrays-000.npz', whole=True):
    """Takes an array and returns its id; a large one in part, if it is not to be whole."""
    name = f'a{len(self.entries)}'
    entry = {'file': file, 'key': name, 'encoding': 'plain', 'sampled': None}
    stored = np.asarray(value)
    if not whole:
      part = sampled(stored)
      entry['sampled'] = {
        'shape': list(stored.shape),
        'sha256': part.sha256,
        'samples': 1024,
        'block': 64,
      }
      stored = np.asarray(part)
    entry.update(dtype=stored.dtype.name, shape=list(stored.shape))
    if stored.dtype.kind in 'SO':
      texts = [bytes(text) for text in stored.reshape(-1)]
      lengths = np.array([len(text) for text in texts], '<i8').reshape(stored.shape)
      data = lengths.tobytes() + b''.join(texts)
      entry.update(dtype='string', encoding='string')
      self.files.setdefault(file, {})[f'{name}.lengths'] = lengths
      stored = np.frombuffer(b''.join(texts), np.uint8)
    elif stored.dtype.name == 'bfloat16':
      entry['encoding'] = 'bfloat16'
      stored = stored.view(np.uint16)
      data = stored.tobytes()
    else:
      data = stored.tobytes()
    entry['sha256'] = sha256(entry['dtype'], entry['shape'], data)
    self.files.setdefault(file, {})[name] = stored
    self.entries[name] = entry
    return name

  def tensor(self, value, noise=None, repeats=True, whole=True, file='arrays-000.npz'):
    """Takes a tensor of a run, and its noise for every stored element."""
    name = self.add(value, file, whole)
    codes = None
    if noise is not None:
      stored = self.files[file][name]
      codes = self.add(noise_codes.noise_codes(np.full(stored.shape, noise), stored), file)
    return {'value': name, 'noise': codes, 'repeats': repeats}


_random = np.random.RandomState


def values(seed, *shape):
  """Returns seeded normal values."""
  return _random(seed).standard_normal(shape).astype(np.float32)


def _variable(name, shape, source=0, **others):
  return {
    'name': name,
    'shape': list(shape),
    'dtype': 'float32',
    'trainable': True,
    'trainable_flag': True,
    'collections': ['trainable_variables', 'variables'],
    'source': source,
    'read': f'{name}/read:0',
    'initializer': f'{name}/Assign',
    'value': f'{name}/Initializer:0',
    'shares_value': False,
    'may_change': False,
    'local': False,
    'global_step': False,
    **others,
  }


def _graph(arrays, training):
  return {
    'training': training,
    'graph_def': arrays.add(np.frombuffer(b'no graph, but bytes', np.uint8)),
    'constant_graph_def': arrays.add(np.frombuffer(b'nor this', np.uint8)) if training else None,
    'sources': [['model.py', 12, 'build', 'w = tf.get_variable(...)']],
    'op_sources': arrays.add(np.array([0, -1, 0], np.int32)),
    'placeholders': [['', 'tf2verify_input/0:0']],
    'structure': "{'ids': Tensor, 'logits': Tensor}",
    'outputs': [["['ids']", 'ids:0'], ["['logits']", None]],
    'variables': [_variable('w', (2, 3)), _variable('large', LARGE, None)],
    'regularization_losses': [[['w'], 'loss:0']],
    'update_ops': ['update'],
    'table_initializers': [],
    'random_draws': [
      {
        'op_type': 'RandomUniform',
        'shape': [2, None],
        'variable': 'w',
        'source': 0,
        'in_loop': False,
        'op_name': 'w/random',
        'feeds_outputs': False,
      }
    ],
    'seed_obstacle': '',
    'operation_seeds': 1,
    'gradients': [{'variable': 'w', 'values': 'g:0', 'indices': None, 'shape': [2, 3]}],
  }


def _run(arrays, training, seed, **others):
  return {
    'training': training,
    'outputs': [
      ["['ids']", arrays.tensor(np.array([[b'cat'], [b'a dog']]))],
      ["['logits']", arrays.tensor(values(seed, 2, 4), 1e-6, repeats=seed % 2 == 0)],
    ],
    'regularization_losses': [[['w'], arrays.tensor(np.float32(0.25 + seed), 3e-8)]],
    'regularization_total': arrays.tensor(np.float32(0.25 + seed), 3e-8),
    'initial_values': [],
    'state_after': [],
    'gradients': [],
    'noise_runs': 8,
    **others,
  }


def _filled(arrays, training, seed, fill, **others):
  run = {'kind': 'filled', 'fill': fill, 'inputs': 'varied', 'with_gradients': False, **others}
  return _run(arrays, training, seed, **run)


def _variables(arrays, seed, file='arrays-001.npz'):
  return [
    ['w', arrays.tensor(values(seed, 2, 3), 1e-7)],
    ['large', arrays.tensor(values(seed + 1, *LARGE), 1e-7, whole=False, file=file)],
  ]


def _losses(arrays):
  alone = {
    'graph_def': arrays.add(np.frombuffer(b'a loss', np.uint8)),
    'outputs': [["['logits']", 'logits:0']],
    'labels': [['', 'labels:0']],
    'initializers': [],
    'loss': 'loss:0',
    'gradients': [["['logits']", 'gradient:0', None]],
    'value': arrays.tensor(np.float32(2.5)),
    'gradient_values': [["['logits']", arrays.tensor(values(8, 2, 4))]],
  }
  logits = arrays.add(values(7, 2, 4))
  return {
    'run': 'training, distinct values',
    'training': True,
    'graph': _graph(arrays, True),
    'label_placeholders': [['', 'labels:0']],
    'loss': 'loss:0',
    'total_loss': 'total:0',
    'own_loss': True,
    'own_total_loss': False,
    'output_nest': {
      'namedtuple': 'Outputs',
      'fields': [['ids', {'none': True}], ['logits', {'array': logits}]],
    },
    'observation': {
      'loss': arrays.tensor(np.float32(2.5), 1e-7),
      'total_loss': arrays.tensor(np.float32(2.75), 1e-7),
      'regularization_total': None,
    },
    'alone': alone,
    'alone_error': '',
    'alone_one': None,
    'noise_runs': 4,
  }


def _steps(arrays):
  def slot(seed):
    value = arrays.tensor(values(seed, 2, 3))
    return {'role': 'momentum', 'variable': 'w', 'name': 'w/Momentum', 'value': value}

  return {
    'run': 'training, distinct values',
    'training': True,
    'made_by': 'optimizer',
    'run_update_ops': True,
    'train_op': 'train',
    'learning_rate': 0.1,
    'global_step': 'global_step',
    'added': [_variable('w/Momentum', (2, 3)), _variable('global_step', (), global_step=True)],
    'gradients': [],
    'applied_gradients': [],
    'optimizers': [{'name': 'Momentum', 'settings': [['momentum', 0.9]], 'rule': 'momentum'}],
    'values_before': _variables(arrays, 20),
    'slots_before': [slot(30)],
    'steps': [
      {
        'number': number,
        'loss': arrays.tensor(np.float32(number)),
        'learning_rate': 0.1,
        'global_step': number,
        'gradients': [['w', arrays.tensor(values(40 + number, 2, 3))], ['large', None]],
        'applied_gradients': [],
        'variables': _variables(arrays, 50 + number),
        'slots': [slot(60 + number)],
      }
      for number in (1, 2)
    ],
    'updates_left_out': [],
    'regularization_total': None,
    'random_draws': [],
    'noise_runs': 4,
  }


def parts(**changes):
  """Returns the manifest, without its digest, and the arrays of each file.

  Args:
    **changes: fields of the manifest, in place of those that it has.
  """
  import ml_dtypes

  arrays = Arrays()
  inputs = {'array': arrays.add(values(0, 2, 5))}
  labels = {
    'dict': {
      'ids': {'list': [{'array': arrays.add(np.array([1, 2], np.int64))}]},
      'masks': {'tuple': [{'array': arrays.add(np.array([1.5, -2], ml_dtypes.bfloat16))}]},
    }
  }
  first = _filled(arrays, False, 2, 'distinct values')
  manifest = {
    'schema': 1,
    'kind': 'tf2verify recording',
    'versions': {'recorder': 1, 'fill': 1, 'seeds': 1, 'loss': 1, 'sampling': 1, 'noise': 1},
    'made': '2026-11-21T18:50:00Z',
    'environment': {'tensorflow': '1.15.5', 'python': '3.7.16', 'numpy': '1.18.5'},
    'builder': {
      'name': 'model:build',
      'sources': [{'path': 'model.py', 'sha256': hashlib.sha256(b'').hexdigest()}],
    },
    'arguments': {'steps': 2, 'note': 'naïve'},
    'training_modes': [False, True],
    'inputs': inputs,
    'varied_inputs': inputs,
    'replaced_inputs': [],
    'labels': labels,
    'fills': {'distinct values': {'w': sha256('float32', (2, 3), b''), 'steps': None}},
    'graphs': [_graph(arrays, False), _graph(arrays, True)],
    'runs': [
      first,
      _filled(
        arrays,
        True,
        3,
        'distinct values',
        with_gradients=True,
        gradients=[['w', arrays.tensor(values(9, 2, 3), 1e-7)], ['large', None]],
      ),
      {
        'kind': 'seeded',
        'mode': 'constant',
        **_run(
          arrays,
          True,
          4,
          initial_values=_variables(arrays, 10),
          state_after=_variables(arrays, 12),
        ),
      },
    ],
    'losses': _losses(arrays),
    'steps': _steps(arrays),
    'checkpoint': {
      'path': '/models/model.ckpt-3',
      'keys': [{'name': 'w', 'shape': [2, 3], 'dtype': 'float32', 'sha256': 'a' * 64}],
    },
    'intermediates': {
      'level': 'full',
      'runs': [{'run': 0, 'tensors': [['relu:0', arrays.add(values(15, 2, 4))]]}],
    },
    'arrays': arrays.entries,
  }
  return {**manifest, **changes}, arrays.files


def write(folder, manifest, files):
  """Writes a recording."""
  folder = pathlib.Path(folder)
  folder.mkdir(parents=True, exist_ok=True)
  for n, (name, arrays) in enumerate(files.items()):
    (np.savez_compressed if n else np.savez)(folder / name, **arrays)
  (folder / MANIFEST).write_bytes(signed(manifest) + b'\n')
  return str(folder)


def make(folder, **changes):
  """Writes the recording of this page, and returns the path of its folder."""
  return write(folder, *parts(**changes))
