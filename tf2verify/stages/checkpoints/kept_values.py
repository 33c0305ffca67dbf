"""Why a case's own loader left a variable differently than a TF1 checkpoint has it."""

from collections.abc import Mapping, Sequence

import numpy as np

from tf2verify.diagnosis.causes import causes_of, first_cause
from tf2verify.diagnosis.evidence.checkpoint import RestoredValue, UnreadVariable
from tf2verify.numerics.restored_values import same
from tf2verify.records.checkpoint import KeyAccount
from tf2verify.records.difference import Difference
from tf2verify.records.tensor_key import TensorKey
from tf2verify.records.wording import listed
from tf2verify.sides.tf1.checkpoint import CheckpointFile
from tf2verify.sides.tf2.files import checkpoint as tf2_checkpoint
from tf2verify.sides.tf2.files.checkpoint import RestoreCall
from tf2verify.sides.tf2.layers.port import Port
from tf2verify.stages.checkpoints.restoring import compare_restored, with_hint
from tf2verify.stages.comparison.comparing import Comparison
from tf2verify.stages.stage import CaseUnderTest


def restored_key(tf1: str, tf2: str) -> TensorKey:
  """Returns what findings call the restored value of a variable."""
  return TensorKey('restored value', tf1, port_name=tf2)


# Names in one sentence.


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
    self._ids = port.identities()
    kept = [name for name in values if same(self._now[name], before[name])]
    self._count = f'{len(values) - len(kept)} of {len(values)} variables restored'
    unread = [s.key for s in account.sources if dict(case.alignment().pairs)[s.variable] in kept]
    self._said: dict[str, str] = {}
    self._left_out = listed(unread)

  def compare(self, tf1: str, tf2: str, key: str, comparison: Comparison) -> None:
    """Compares one variable with the value of its key."""

    def with_cause(difference: Difference) -> Difference:
      actual = self._now[tf2]
      others = self._file.values_like(actual)
      value = RestoredValue(tf1, actual, self._values[tf2], self._before[tf2], key, others)
      # Told once for all variables of which it is true.
      if value.kept:
        cause = next(causes_of(self._unread(tf2, key)))
        hint = self._said.setdefault(cause.rule, f'{self._count}: {cause.text}')
      else:
        text = first_cause(value)
        hint = self._said.setdefault(text.replace(tf1, '*'), text)
      return with_hint(difference, value, f'the value of the key {key}', hint)

    compare_restored(
      comparison, restored_key(tf1, tf2), self._values[tf2], self._now[tf2], with_cause
    )

  def _unread(self, tf2: str, key: str) -> UnreadVariable:
    return UnreadVariable(
      tf2,
      key,
      self._layer,
      self._left_out,
      by_name=any(call.path == self._file.path for call in self._calls),
      is_key=tf2 in self._names,
      reached=any(self._ids.get(tf2) in call.paths for call in self._calls),
      waits=any(not call.paths for call in self._calls),
    )
