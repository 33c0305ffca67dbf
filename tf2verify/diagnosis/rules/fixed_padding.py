"""Explicit padding became SAME."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.windows import window_attribute
from tf2verify.records.diagnosis import Cause


class FixedPadding(Rule):
  """Explicit padding became SAME: the window is shifted where the stride is 2."""

  name = 'fixed_padding'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a Pad on one side of an operation whose padding differs."""
    for found in evidence.sources:
      padding = window_attribute(found.source, 'padding')
      pads = [
        'Pad' in path or 'PadV2' in path for path in (found.source.tf1_path, found.source.tf2_path)
      ]
      if padding is None or pads[0] == pads[1]:
        continue
      explicit, other = ('tf1', 'the port') if pads[0] else ('the port', 'tf1')
      return self.cause(
        f'{explicit} pads explicitly and convolves with VALID, {other} uses SAME, which pads 0 '
        'before and 1 after where the stride is 2 and the size even: same shape, shifted by a '
        "pixel; keep tf.pad and padding='valid'",
        f'{found.source.tf1_op}: padding {padding[0]} (tf1), {padding[1]} (tf2), Pad in {explicit}',
      )
    return None
