"""Ways in which a recording can be damaged, or made to do harm.

A mutation changes a folder that holds a recording. Those in `SIGNED` write the
manifest's digest anew, as somebody would who means harm; they say something that is
wrong in itself, never only another value, which is its author's right.
"""

import io
import json
import os
import pathlib
import shutil
import struct
import zipfile

import numpy as np

from tests.recordings import hand_made


def _files(folder):
  return sorted(path for path in folder.iterdir() if path.is_file())


def _pick(random, choices):
  return choices[random.randint(len(choices))]


def flip_a_bit(folder, random):
  path = _pick(random, _files(folder))
  data = bytearray(path.read_bytes())
  data[random.randint(len(data))] ^= 1 << random.randint(8)
  path.write_bytes(data)


def truncate(folder, random):
  path = _pick(random, _files(folder))
  data = path.read_bytes()
  path.write_bytes(data[: random.randint(len(data))])


def append(folder, random):
  path = _pick(random, _files(folder))
  size = _pick(random, [1, 30, 2**16, 2**18])
  path.write_bytes(path.read_bytes() + random.bytes(size))


def insert_before(folder, random):
  path = _pick(random, _files(folder))
  path.write_bytes(random.bytes(1 + random.randint(40)) + path.read_bytes())


def overwrite_a_stretch(folder, random):
  path = _pick(random, _files(folder))
  data = bytearray(path.read_bytes())
  start, size = random.randint(len(data)), 1 + random.randint(64)
  data[start : start + size] = _pick(random, [b'\0' * size, b'\xff' * size, random.bytes(size)])
  path.write_bytes(data)


def lose_a_stretch(folder, random):
  path = _pick(random, _files(folder))
  data = path.read_bytes()
  start = random.randint(len(data))
  path.write_bytes(data[:start] + data[start + 1 + random.randint(64) :])


def remove_a_file(folder, random):
  _pick(random, _files(folder)).unlink()


def rename_a_file(folder, random):
  path = _pick(random, _files(folder))
  path.rename(folder / f'{path.name}.bak')


def swap_two_files(folder, random):
  one, other = (path for path in _files(folder) if path.name != hand_made.MANIFEST)
  first = one.read_bytes()
  one.write_bytes(other.read_bytes())
  other.write_bytes(first)


def replace_by_another_kind(folder, random):
  path = _pick(random, _files(folder))
  data = path.read_bytes()
  path.unlink()
  kind = random.randint(4)
  if kind == 0:
    path.mkdir()
  elif kind == 1:
    path.write_bytes(b'')
  elif kind == 2:
    os.mkfifo(path)
  else:
    outside = folder.parent / 'outside'
    outside.write_bytes(data)
    path.symlink_to(outside)


def make_unreadable(folder, random):
  path = _pick(random, _files(folder))
  path.unlink()
  path.symlink_to(_pick(random, ['nowhere', path.name, '/proc/self/mem']))


# --- zip files that are whole, but not those that were written


def _members(path):
  with zipfile.ZipFile(path) as archive:
    return [(info.filename, archive.read(info)) for info in archive.infolist()]


def _write(path, members, method=zipfile.ZIP_STORED):
  with zipfile.ZipFile(path, 'w', method) as archive:
    for name, data in members:
      archive.writestr(name, data)


def _npy(value, **keywords):
  buffer = io.BytesIO()
  np.lib.format.write_array(buffer, value, **keywords)
  return buffer.getvalue()


def _an_archive(folder, random):
  path = _pick(random, [path for path in _files(folder) if path.suffix == '.npz'])
  return path, _members(path)


def swap_members(folder, random):
  path, members = _an_archive(folder, random)
  by_size = {}
  for n, (_, data) in enumerate(members):
    by_size.setdefault(data[:128], []).append(n)
  pairs = [
    (one, other)
    for alike in by_size.values()
    for one in alike
    for other in alike
    if members[one][1] != members[other][1]
  ]
  one, other = _pick(random, pairs)
  first, second = members[one], members[other]
  members[one], members[other] = (first[0], second[1]), (second[0], first[1])
  _write(path, members)


def change_an_element(folder, random):
  """With checksums of the zip file that are right."""
  path, members = _an_archive(folder, random)
  number = random.randint(len(members))
  name, data = members[number]
  changed = bytearray(data)
  changed[-1 - random.randint(max(len(data) - 128, 1))] ^= 1 << random.randint(8)
  members[number] = name, bytes(changed)
  _write(path, members, _pick(random, [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))


def drop_a_member(folder, random):
  path, members = _an_archive(folder, random)
  del members[random.randint(len(members))]
  _write(path, members)


def add_a_member(folder, random):
  path, members = _an_archive(folder, random)
  name = _pick(random, ['a999.npy', '../a0.npy', '/etc/passwd', 'a0', 'b.py', 'a0.npy/', '\u202e'])
  _write(path, [*members, (name, b'import os')])


def double_a_member(folder, random):
  path, members = _an_archive(folder, random)
  _write(path, [*members, _pick(random, members)])


def rename_a_member(folder, random):
  path, members = _an_archive(folder, random)
  number = random.randint(len(members))
  name = _pick(random, ['../a0.npy', 'a0.NPY', '', 'a0.npy\0', 'a' * 300])
  members[number] = name, members[number][1]
  _write(path, members)


def pickle_an_array(folder, random):
  path, members = _an_archive(folder, random)
  number = random.randint(len(members))
  value = np.array([print, 'objects'], object)
  members[number] = members[number][0], _npy(value, allow_pickle=True)
  _write(path, members)


def another_array(folder, random):
  """Of another shape, dtype or order, or with another header."""
  path, members = _an_archive(folder, random)
  number = random.randint(len(members))
  name, data = members[number]
  value = np.load(io.BytesIO(data))
  kind = random.randint(8)
  if kind == 0:
    value = value.reshape(-1)[: max(value.size // 2, 0)]
  elif kind == 1:
    value = value.astype(np.float64 if value.dtype != np.float64 else np.int8)
  elif kind == 2:
    value = np.asfortranarray(value + value.dtype.type(1))
  elif kind == 3:
    value = value[None]
  found = _npy(value)
  if kind == 4:
    found = found.replace(b"'fortran_order': False", b"'fortran_order': True ")
  elif kind == 5:
    found = found.replace(b"'shape': (", b"'shape': (99999999999999999999999, ")
  elif kind == 6:
    found = found.replace(b'{', b'{' * 60)
  elif kind == 7:
    found = found[:6] + bytes([_pick(random, [0, 2, 3, 9]), 0]) + found[8:]
  members[number] = name, found
  _write(path, members)


def _patch_directory(folder, random, offset, data):
  """Overwrites bytes of a member's entry in the central directory."""
  path, _ = _an_archive(folder, random)
  found = bytearray(path.read_bytes())
  starts = [n for n in range(len(found) - 4) if found[n : n + 4] == b'PK\x01\x02']
  start = _pick(random, starts) + offset
  found[start : start + len(data)] = data
  path.write_bytes(found)


def encrypt(folder, random):
  _patch_directory(folder, random, 8, struct.pack('<H', 1))


def pack_by_another_method(folder, random):
  _patch_directory(folder, random, 10, struct.pack('<H', _pick(random, [1, 8, 9, 12, 14, 93, 99])))


def lie_about_sizes(folder, random):
  sizes = struct.pack('<I', _pick(random, [0, 1, 2**31, 2**32 - 1]))
  _patch_directory(folder, random, _pick(random, [20, 24]), sizes)


def lie_about_offsets(folder, random):
  _patch_directory(folder, random, 42, struct.pack('<I', _pick(random, [0, 7, 2**31, 2**32 - 1])))


def bomb(folder, random):
  """A member that takes far more than the manifest says."""
  path, members = _an_archive(folder, random)
  number = random.randint(len(members))
  members[number] = members[number][0], _npy(np.zeros(2**22, np.uint8))
  _write(path, members, zipfile.ZIP_DEFLATED)


def another_packer(folder, random):
  path, members = _an_archive(folder, random)
  _write(path, members, _pick(random, [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]))


# --- manifests


def _manifest(folder):
  return json.loads((folder / hand_made.MANIFEST).read_bytes())


def _store(folder, text):
  (folder / hand_made.MANIFEST).write_bytes(text)


def change_a_value(folder, random):
  """Without a new digest."""
  manifest = _manifest(folder)
  holder, key = _pick(random, list(_places(manifest, ())))
  holder[key] = _pick(random, [None, 7, 'x', [], {}, True, 1.5])
  _store(folder, json.dumps(manifest).encode())


def swap_values(folder, random):
  """Without a new digest: two values of one type, such as the ids of two arrays."""
  manifest = _manifest(folder)
  places = list(_places(manifest, ()))
  one, key = _pick(random, places)
  alike = [(h, k) for h, k in places if type(h[k]) is type(one[key]) and h[k] != one[key]]
  if not alike:
    return
  other, other_key = _pick(random, alike)
  if not isinstance(one[key], (dict, list)):
    one[key], other[other_key] = other[other_key], one[key]
  _store(folder, json.dumps(manifest).encode())


def odd_json(folder, random):
  text = (folder / hand_made.MANIFEST).read_text()
  changed = [
    text.replace('"schema":1', '"schema":NaN'),
    text.replace('"schema":1', '"schema":1,"schema":1'),
    text.replace('"schema":1', '"schema":' + '9' * 5000),
    text.replace('"schema":1', '"schema":1e999'),
    text.replace('"arguments":{', '"arguments":{"deep":' + '[' * 100000 + ']' * 100000 + ','),
    text.replace('"arguments":{', '"arguments":{"deep":' + '[' * 100000),
    text.replace('"note"', '"note\\ud800"'),
    text.replace('na\u00efve', '\\ud83d'),
    text.replace('"kind"', '"Kind"'),
    'null',
    '[]',
    '""',
    '{}',
    '{"kind": 5}',
    ' ' * 1000,
  ]
  data = _pick(random, changed).encode('utf-8', 'surrogatepass')
  odd = [data, b'\xef\xbb\xbf' + data, text.encode('utf-16'), data.replace(b'build', b'\xff\xfe')]
  _store(folder, odd[0] if random.randint(2) else _pick(random, odd[1:]))


# Values of these may be of many types, or any number of them may be there.
_FREE = ('arguments', 'environment', 'fills', 'versions', 'sha256')
_WRONG = {
  int: ['1', -1, 1.5, True, 2**70, {'x': 1}, []],
  str: [5, True, [], {'x': 1}],
  bool: [0, 'true', [], {'x': 1}],
  float: ['0.1', True, [], {'x': 1}],
  list: ['x', 5, {'x': 1}, True],
  dict: [[], 'x', 5, {'x': 1}],
  type(None): [{'x': 1}, True],
}


def _places(value, skipped):
  """Yields holder and key of every value."""
  keys = list(value) if isinstance(value, dict) else range(len(value))
  for key in keys:
    if key in skipped:
      continue
    yield value, key
    if isinstance(value[key], (dict, list)):
      yield from _places(value[key], skipped)


def wrong_type(folder, random):
  manifest = _manifest(folder)
  holder, key = _pick(random, list(_places(manifest, _FREE)))
  wrong = _WRONG[type(holder[key])]
  if key == 'learning_rate':
    wrong = [[], True]  # may be a name as well as a number
  holder[key] = _pick(random, wrong)
  _store(folder, hand_made.signed(manifest))


def missing_field(folder, random):
  manifest = _manifest(folder)
  # A dictionary of arrays may have any keys.
  holders = [(h, k) for h, k in _places(manifest, (*_FREE, 'dict')) if isinstance(h, dict)]
  holder, key = _pick(random, holders)
  if key == 'none' or set(holder) & {'list', 'tuple', 'dict'}:
    holder['unknown'] = 1
  else:
    del holder[key]
  _store(folder, hand_made.signed(manifest))


def unknown_field(folder, random):
  manifest = _manifest(folder)
  holders = [h[k] for h, k in _places(manifest, _FREE) if isinstance(h[k], dict)]
  _pick(random, holders)['unknown'] = _pick(random, [1, 'x', None, {}])
  _store(folder, hand_made.signed(manifest))


def wrong_reference(folder, random):
  manifest = _manifest(folder)
  places = [
    (h, k) for h, k in _places(manifest, _FREE) if isinstance(h[k], str) and h[k] in _ids(manifest)
  ]
  holder, key = _pick(random, places)
  holder[key] = _pick(random, ['a9999', '', '../a0', 'a0\0', 'w'])
  _store(folder, hand_made.signed(manifest))


def _ids(manifest):
  return set(manifest['arrays'])


def wrong_array(folder, random):
  """An entry of another size, dtype or place."""
  manifest = _manifest(folder)
  entry = manifest['arrays'][_pick(random, sorted(manifest['arrays']))]
  kind = random.randint(8)
  if kind == 0:
    entry['file'] = _pick(
      random,
      ['../x.npz', '/etc/passwd', 'A.npz', '', '..', 'x', 'a/b.npz', 'a\\b.npz', 'manifest.json'],
    )
  elif kind == 1:
    entry['shape'] = [*entry['shape'], 2]
  elif kind == 2:
    entry['shape'] = _pick(random, [[2**40], [2**62, 2**62], [0], [2**31, 2**31], [1] * 40])
  elif kind == 3:
    entry['dtype'] = 'int16' if entry['dtype'] != 'int16' else 'int8'
  elif kind == 4:
    entry['dtype'] = _pick(random, ['object', 'O', '|V8', 'datetime64', 'float128', 'S5'])
  elif kind == 5:
    entry['key'] = 'a9999'
  elif kind == 6:
    entry['encoding'] = 'string' if entry['encoding'] != 'string' else 'bfloat16'
  else:
    entry['sampled'] = {'shape': [7], 'sha256': '0' * 64, 'samples': 3, 'block': 64}
  _store(folder, hand_made.signed(manifest))


def other_version(folder, random):
  manifest = _manifest(folder)
  kind = random.randint(4)
  if kind == 0:
    manifest['schema'] = _pick(random, [0, 2, 10**18, -1, True, '1', None, 1.0])
  elif kind == 1:
    manifest['kind'] = _pick(random, ['tf2verify report', '', None, 1])
  elif kind == 2:
    name = _pick(random, sorted(manifest['versions']))
    manifest['versions'][name] = _pick(random, [0, 2, '1', True, None, [], 1.0])
  else:
    manifest['sha256'] = _pick(random, ['0' * 64, None, 5, [], ''])
    _store(folder, json.dumps(manifest).encode())
    return
  _store(folder, hand_made.signed(manifest))


def bomb_that_is_declared(folder, random):
  """Huge arrays of zeros, and a manifest that says so."""
  manifest = _manifest(folder)
  name = 'arrays-009.npz'
  size = 300 * 2**20
  entry = {
    'file': name,
    'key': 'huge',
    'dtype': 'uint8',
    'shape': [size],
    'sha256': '0' * 64,
    'encoding': 'plain',
    'sampled': None,
  }
  manifest['arrays']['huge'] = entry
  _write(folder / name, [('huge.npy', b'\x93NUMPY')])
  if random.randint(2):
    entry['shape'] = [2**33]
  _store(folder, hand_made.signed(manifest))


UNSIGNED = {
  flip_a_bit: 300,
  truncate: 60,
  append: 20,
  insert_before: 15,
  overwrite_a_stretch: 70,
  lose_a_stretch: 40,
  remove_a_file: 6,
  rename_a_file: 6,
  swap_two_files: 2,
  replace_by_another_kind: 15,
  make_unreadable: 8,
  swap_members: 30,
  change_an_element: 70,
  drop_a_member: 10,
  add_a_member: 12,
  double_a_member: 8,
  rename_a_member: 10,
  pickle_an_array: 15,
  another_array: 40,
  encrypt: 6,
  pack_by_another_method: 12,
  lie_about_sizes: 14,
  lie_about_offsets: 8,
  bomb: 12,
  another_packer: 4,
  change_a_value: 30,
  swap_values: 20,
  odd_json: 40,
}
SIGNED = {
  wrong_type: 120,
  missing_field: 40,
  unknown_field: 30,
  wrong_reference: 25,
  wrong_array: 50,
  other_version: 30,
  bomb_that_is_declared: 2,
}


def fresh(source, folder):
  """Copies a recording; returns the copy's folder."""
  folder = pathlib.Path(folder)
  shutil.rmtree(folder, ignore_errors=True)
  shutil.copytree(source, folder)
  return folder
