import importlib.util
import os
import tempfile

import numpy as np
import tensorflow as tf
from absl.testing import absltest
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

from tf2verify.sides.tf2.traces.ways_to_trace import trace
from tf2verify.tensorflow_internals import autograph_cache

_CODE = """
def compute(x):
  return {'output': x * 2.0}
"""


_ON = ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED)


def _module(name, folder):
  path = os.path.join(folder, f'{name}.py')
  with open(path, 'w', encoding='utf-8') as file:
    file.write(_CODE)
  spec = importlib.util.spec_from_file_location(name, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


class ByFileTest(absltest.TestCase):
  def setUp(self):
    super().setUp()
    self.folder = self.enter_context(tempfile.TemporaryDirectory())

  def files(self):
    """Returns the files to which the operation of two equal modules is traced back."""
    found = []
    for name in ('first', 'second'):
      compute = api.tf_convert(_module(name, self.folder).compute, _ON)
      traced = trace(compute, np.ones(3, np.float32))
      op = next(op for op in traced.graph.get_operations() if op.type == 'Mul')
      files = [os.path.basename(frame.filename) for frame in op.traceback]
      found.append([file for file in files if file in ('first.py', 'second.py')][-1])
    return found

  def test_code_is_traced_back_to_its_own_file(self):
    with autograph_cache.by_file():
      self.assertEqual(self.files(), ['first.py', 'second.py'])

  def test_autograph_alone_takes_equal_code_for_the_same(self):
    self.assertEqual(self.files(), ['first.py', 'first.py'])

  def test_a_function_is_converted_once(self):
    compute = _module('first', self.folder).compute
    converted = []
    for _ in range(2):
      with autograph_cache.by_file():
        before = len(api._TRANSPILER._cache)
        api.tf_convert(compute, _ON)(tf.constant([1.0, 2.0]))
        converted.append(len(api._TRANSPILER._cache) - before)
    self.assertEqual(converted, [1, 0])

  def test_the_cache_is_put_back(self):
    before = api._TRANSPILER._cache
    with self.assertRaises(ValueError), autograph_cache.by_file():
      self.assertIsNot(api._TRANSPILER._cache, before)
      raise ValueError
    self.assertIs(api._TRANSPILER._cache, before)


if __name__ == '__main__':
  absltest.main()
