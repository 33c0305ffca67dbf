"""Another padding scheme."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.windows import window_attribute
from tf2verify.records.diagnosis import Cause


class PaddingDefault(Rule):
  """Another padding scheme."""

  name = 'padding_default'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a windowed operation whose padding, and nothing around it, differs."""
    for found in evidence.sources:
      padding = window_attribute(found.source, 'padding')
      extra = any('Pad' in path for path in (found.source.tf1_path, found.source.tf2_path))
      if padding is not None and not extra:
        return self.cause(
          f'the padding is {padding[0]} in tf1 and {padding[1]} in the port: pass '
          f'padding={padding[0].lower()!r}; slim convolves with SAME and pools with VALID by '
          'default, tf.layers and Keras use valid',
          f'{found.source.tf1_op}: padding {padding[0]} (tf1), {padding[1]} (tf2)',
        )
    return None
