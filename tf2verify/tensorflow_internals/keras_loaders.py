"""TensorFlow's loaders of Keras, each of which decides at its first use which Keras it is.

Where TF_USE_LEGACY_KERAS is off, `tf.keras` is Keras 3, and what exists in Keras 2 only
(`tf.compat.v1.keras`, `tf.compat.v1.layers`, `tf.compat.v1.nn.rnn_cell`) raises. Run with
TensorFlow 2.16 to 2.21.
"""

import importlib
import importlib.util
import os
import sys
import types
from typing import Any

_FLAG = 'TF_USE_LEGACY_KERAS'
_TF1 = 'v1'
_LEGACY = '__internal__.legacy.'
_MARK = 'tf2verify_tf1_from_keras_2'
# `tensorflow.compat.v1` and `tensorflow._api.v2.compat.v1` are two modules with their own loaders.
_TF1_MODULES = '.compat.v1'


def load_tf1_from_keras_2() -> None:
  """Has the API of TF1 come from tf-keras, whatever `tf.keras` is; also what is loaded later."""
  loader = importlib.import_module('tensorflow.python.util.lazy_loader').KerasLazyLoader
  known = loader._initialize
  if not hasattr(known, _MARK):

    def initialize(self: Any) -> None:
      tf1 = self._tfll_mode == _TF1 or (self._tfll_submodule or '').startswith(_LEGACY)
      before = os.environ.get(_FLAG)
      try:
        if tf1:
          os.environ[_FLAG] = '1'
        known(self)
      finally:
        if before is None:
          os.environ.pop(_FLAG, None)
        else:
          os.environ[_FLAG] = before

    setattr(initialize, _MARK, True)
    loader._initialize = initialize
  _lead_imports_to_keras_2()


def _lead_imports_to_keras_2() -> None:
  """Lets `import tensorflow.compat.v1.keras`, which asks no loader, find tf-keras."""
  importlib.import_module('tensorflow.compat.v1')
  spec = importlib.util.find_spec('tf_keras')
  if spec is None or not spec.submodule_search_locations:
    return
  folder = os.path.join(spec.submodule_search_locations[0], 'api', '_v1')
  for name, module in list(sys.modules.items()):
    is_tf1 = name.startswith('tensorflow.') and name.endswith(_TF1_MODULES)
    path = vars(module).get('__path__') if isinstance(module, types.ModuleType) else None
    if is_tf1 and isinstance(path, list) and folder not in path:
      path.insert(0, folder)
