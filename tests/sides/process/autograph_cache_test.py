import importlib.util
import os
import tempfile

import numpy as np
from absl.testing import absltest
from tensorflow.python.autograph.core import ag_ctx
from tensorflow.python.autograph.impl import api

from tf2verify.sides.process import autograph_cache
from tf2verify.sides.tf2.tracing import trace

_CODE = """
def compute(x):
  return {'output': x * 2.0}
"""


class ForgetTest(absltest.TestCase):
  def files(self, forget):
    """Returns the files to which the operation of two equal modules is traced back."""
    folder = self.enter_context(tempfile.TemporaryDirectory())
    found = []
    for name in ('first', 'second'):
      path = os.path.join(folder, f'{name}.py')
      with open(path, 'w', encoding='utf-8') as file:
        file.write(_CODE)
      spec = importlib.util.spec_from_file_location(name, path)
      module = importlib.util.module_from_spec(spec)
      spec.loader.exec_module(module)
      if forget:
        autograph_cache.forget()
      compute = api.tf_convert(module.compute, ag_ctx.ControlStatusCtx(ag_ctx.Status.ENABLED))
      traced = trace(compute, np.ones(3, np.float32))
      op = next(op for op in traced.graph.get_operations() if op.type == 'Mul')
      files = [os.path.basename(frame.filename) for frame in op.traceback]
      found.append([file for file in files if file in ('first.py', 'second.py')][-1])
    return found

  def test_code_is_traced_back_to_its_own_file(self):
    self.assertEqual(self.files(forget=True), ['first.py', 'second.py'])

  def test_autograph_alone_takes_equal_code_for_the_same(self):
    self.assertEqual(self.files(forget=False), ['first.py', 'first.py'])


if __name__ == '__main__':
  absltest.main()
