"""Settings of an optimizer that differ beside one that hides their effect within the tolerance."""

from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.rules.updates import update_texts
from tf2verify.diagnosis.rules.updates.settings import unlike
from tf2verify.records.diagnosis import About, Cause
from tf2verify.records.wording import listed

_RATE = 'learning_rate'


def further_settings(evidence: TrainingEvidence) -> Cause | None:
  """Names all settings in which two optimizers differ, where the learning rate alone would do."""
  rates = evidence.learning_rates()
  if rates is None or not all(rates) or any(len(set(side)) > 1 for side in rates):
    return None
  found = unlike(evidence)
  if found is None:
    return None
  names = [name for name, _ in found.tf1.form.settings if name in found.names]
  if _RATE not in names or len(names) < max(len(found.names), 2):
    return None
  if not all(found.explained_by(some, evidence.number) for some in ([_RATE], names)):
    return None
  tf1, tf2 = found.tf1, found.tf2
  said = [update_texts.setting_text(name, tf1, tf2) for name in names]
  passed = [update_texts.argument_text(name, tf1, tf2) for name in names]
  text = (
    f'{len(names)} settings of the optimizers differ: {listed(said)}: pass '
    f'{listed(passed)} to {tf2.record.name}'
  )
  of = tuple(pair.name for pair in found.pairs) if evidence.left_out else ()
  return Cause(text, explains=(About.LEARNING_RATE, About.UPDATE, About.SHADOWS), variables=of)
