"""Verifies that a TF2 port of a TensorFlow 1 model is still the same model.

    class MyCase(tf2verify.EquivalenceCase):
      def build_tf1_graph(self, inputs, training): ...
      def make_tf2_layer(self): ...
      def make_inputs(self): ...

    if __name__ == '__main__':
      tf2verify.main()

Importing the package makes TF1-style code run on a current TensorFlow (see
`tf2verify.environment.legacy_keras`). The public names are loaded at first use, so that
`python -m tf2verify doctor` still explains an environment that cannot work.
"""

import functools
import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from tf2verify.environment import collection, interruption, legacy_keras
from tf2verify.environment.started_module import started_module
from tf2verify.environment.version import VERSION

if TYPE_CHECKING:
  from tf2verify.assertion import assert_equivalent
  from tf2verify.case import EquivalenceCase, verify
  from tf2verify.commands.runner import main
  from tf2verify.commands.variable_map import derive_variable_map
  from tf2verify.errors import Tf2VerifyError
  from tf2verify.numerics.tolerance import Tolerance
  from tf2verify.records.resources import Resources
  from tf2verify.records.status import Status
  from tf2verify.records.verdict import CaseVerdict, StageVerdict
  from tf2verify.reference.fill_values import distinct_values
  from tf2verify.reference.inputs import normal_inputs
  from tf2verify.relation.layouts.map_entry import MapEntry
  from tf2verify.relation.variable_map import VariableMap
  from tf2verify.selection import all_stages_except
  from tf2verify.sides.process.randomness import random_tool

__version__ = VERSION

__all__ = [
  'CaseVerdict',
  'EquivalenceCase',
  'MapEntry',
  'Resources',
  'StageVerdict',
  'Status',
  'Tf2VerifyError',
  'Tolerance',
  'VariableMap',
  'all_stages_except',
  'assert_equivalent',
  'derive_variable_map',
  'distinct_values',
  'main',
  'normal_inputs',
  'random_tool',
  'verify',
]

_HOMES = {
  'CaseVerdict': 'tf2verify.records.verdict',
  'EquivalenceCase': 'tf2verify.case',
  'MapEntry': 'tf2verify.relation.layouts.map_entry',
  'Resources': 'tf2verify.records.resources',
  'StageVerdict': 'tf2verify.records.verdict',
  'Status': 'tf2verify.records.status',
  'Tf2VerifyError': 'tf2verify.errors',
  'Tolerance': 'tf2verify.numerics.tolerance',
  'VariableMap': 'tf2verify.relation.variable_map',
  'all_stages_except': 'tf2verify.selection',
  'assert_equivalent': 'tf2verify.assertion',
  'derive_variable_map': 'tf2verify.commands.variable_map',
  'distinct_values': 'tf2verify.reference.fill_values',
  'main': 'tf2verify.commands.runner',
  'normal_inputs': 'tf2verify.reference.inputs',
  'random_tool': 'tf2verify.sides.process.randomness',
  'verify': 'tf2verify.case',
}

# The command line imports TensorFlow, which takes seconds, only for a command that needs it: not
# for --help, nor to read stored reports and journals, nor for a fleet, whose cases run in
# processes of their own, nor to repeat a script, whose processes must not inherit the choice of
# Keras 2. See `tf2verify.commands.cli`.
_is_command = 'tf2verify' in (started_module(sys.orig_argv), os.path.basename(sys.argv[0]))
if _is_command:
  interruption.leave_at_once()
# A process of another program that only hands cases on sets this: a worker of Ray.
_supervises = 'TF2VERIFY_SUPERVISES' in os.environ
if not (_supervises or _is_command):
  legacy_keras.prepare()
# Once it holds, it is not asked again; while it does not, every use raises.
_require = functools.cache(legacy_keras.require)


def __getattr__(name: str) -> Any:
  """Loads a public name at its first use.

  Raises:
    EnvironmentProblem: TF1-style code cannot run in this environment.
  """
  if name not in _HOMES:
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
  _require()
  with collection.paused():
    home = importlib.import_module(_HOMES[name])
  found = getattr(home, name)
  globals()[name] = found  # hooks may ask for it thousands of times
  return found


def __dir__() -> list[str]:
  return sorted({*globals(), *__all__})
