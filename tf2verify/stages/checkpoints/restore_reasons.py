"""Why a case's own loader left a variable otherwise than a TF1 checkpoint has it."""

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.numerics import restored_values
from tf2verify.records.checkpoint import KeyAccount
from tf2verify.records.difference import Aspect, Difference, subject_of
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf2 import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.checkpoint import RestoreCall
from tf2verify.sides.tf2.port import Port
from tf2verify.stages.checkpoints.restoring import RestoreComparison
from tf2verify.stages.stage import CaseUnderTest

RESTORED = 'restored value'
# Names in one sentence.
_SHOWN = 3


class Reasons:
  """Says why variables have not the values that the case's own loader should give them."""

  def __init__(
    self,
    case: CaseUnderTest,
    file: CheckpointFile,
    account: KeyAccount,
    port: Port,
    values: dict[str, np.ndarray],
    before: Mapping[str, np.ndarray],
    calls: Sequence[RestoreCall],
  ) -> None:
    self._file = file
    self._values = values
    self._before = before
    self._now = tf2_checkpoint.values_of(port)
    self._calls = calls
    self._layer = type(port.layer).__name__
    self._names = {key.name for key in file.keys}
    self._ids = {variable.name.rpartition(':')[0]: id(variable) for variable in port.variables()}
    kept = [name for name in values if restored_values.same(self._now[name], before[name])]
    self._count = f'{len(values) - len(kept)} of {len(values)} variables restored'
    unread = [s.key for s in account.sources if dict(case.alignment().pairs)[s.variable] in kept]
    more = f' and {len(unread) - _SHOWN} more' if len(unread) > _SHOWN else ''
    self._said: dict[str, str] = {}
    self._left_out = f'{", ".join(unread[:_SHOWN])}{more}'

  def compare(self, tf1: str, tf2: str, key: str, comparison: RestoreComparison) -> None:
    """Compares one variable with the value of its key."""

    def explained(difference: Difference) -> Difference:
      actual, expected = self._now[tf2], self._values[tf2]
      found = restored_values.cause(
        tf1, actual, expected, self._before[tf2], key, self._file.values_like(actual)
      )
      if not found.kept:
        # Told once for all variables of which it is true.
        said = self._said.setdefault(found.said.replace(tf1, '*'), found.said)
        return dataclasses.replace(difference, hint=said)
      return dataclasses.replace(
        difference,
        aspect=Aspect.PRESENCE,
        tf1=f'the value of the key {key}',
        tf2='kept its value: not restored',
        array=None,
        hint=self._why_kept(tf2, key),
      )

    comparison.restored(
      RESTORED, subject_of(tf1, tf2), self._values[tf2], self._now[tf2], explained
    )

  def _why_kept(self, tf2: str, key: str) -> str:
    """Returns why a variable kept its value, told once for all of one reason."""
    by_name = any(call.path == self._file.path for call in self._calls)
    reached = any(self._ids.get(tf2) in call.paths for call in self._calls)
    if not reached and any(not call.paths for call in self._calls):
      return f'{self._count}: {unbuilt_text(self._layer)}'
    if by_name and tf2 not in self._names:
      return self._said.setdefault(
        'no key',
        f'{self._count}: tf.train.Checkpoint.restore looks a name-based file up by the names of '
        f'the variables and passes over what it does not find; {tf2} is no key of the '
        f'checkpoint (there it is {key}); read tf.train.load_checkpoint(path).get_tensor(key), or '
        'leave it to tf2verify, which goes by variable_names',
      )
    if by_name and not reached:
      return self._said.setdefault(
        'not reached',
        f'{self._count}: what was given to tf.train.Checkpoint does not lead to {tf2}; '
        f'unread: {self._left_out}; assert_consumed() of a name-based file passes all the same',
      )
    return (
      f'{self._count}: load_tf1_checkpoint leaves keys unread: {self._left_out}; nothing tells '
      'that of a name-based file, nor does assert_consumed(): go through all of layer.variables'
    )


def unbuilt_text(layer: str) -> str:
  """Returns what went wrong where an object without variables was restored."""
  return (
    f'the object that was restored has no variables: it was not built, so the restore waits for '
    f'its first call; restore the {layer} that is given, or call the object once before its '
    'variables are read'
  )
