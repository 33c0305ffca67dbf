"""Another step of a window."""

from tf2verify.diagnosis.evidence import Evidence
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.windows import window_attribute
from tf2verify.records.diagnosis import Cause


class Strides(Rule):
  """Another step of the window."""

  name = 'strides'

  def explain(self, evidence: Evidence) -> Cause | None:
    """Looks for a windowed operation whose strides differ."""
    for found in evidence.sources:
      strides = window_attribute(found.source, 'strides')
      if strides is not None:
        return self.cause(
          f'the window moves by strides {strides[0]} in tf1 and {strides[1]} in the port: pass '
          'strides; slim pools with stride 2 by default, Keras with the size of the pool',
          f'{found.source.tf1_op}: strides {strides[0]} (tf1), {strides[1]} (tf2)',
        )
    return None
