"""Random numbers that are drawn from another distribution."""

from tf2verify.diagnosis.evidence.failed_stage import FailedStage, SourceEvidence
from tf2verify.diagnosis.patterns.operations.draws import Draws, distribution, drawn_otherwise
from tf2verify.records.diagnosis import Cause
from tf2verify.records.observation import SourceLine

_CALLS = {
  'RandomUniform': 'tf.random.uniform',
  'RandomUniformInt': 'tf.random.uniform of integers',
  'RandomStandardNormal': 'tf.random.normal',
  'TruncatedNormal': 'tf.random.truncated_normal',
  'RandomGamma': 'tf.random.gamma',
  'RandomPoisson': 'tf.random.poisson',
  'RandomShuffle': 'tf.random.shuffle',
  'Multinomial': 'tf.random.categorical',
  'LogUniformCandidateSampler': 'tf.random.log_uniform_candidate_sampler',
  'UniformCandidateSampler': 'tf.random.uniform_candidate_sampler',
  'LearnedUnigramCandidateSampler': 'tf.random.learned_unigram_candidate_sampler',
  'FixedUnigramCandidateSampler': 'tf.random.fixed_unigram_candidate_sampler',
}


def other_draw(evidence: FailedStage) -> Cause | None:
  """The port draws from another distribution, or another sample, than tf1.

  Looks for a draw of tf1 alone and one of the port alone, as many of either, one of which leads
  to a place where the sides part.
  """
  if evidence.tf1_graph is None or evidence.tf2_graph is None:
    return None
  found = drawn_otherwise(evidence.tf1_graph, evidence.tf2_graph)
  place = None if found is None else _place_of(evidence, *found)
  if found is None or place is None:
    return None
  tf1, tf2 = found
  times = f', {tf1.more} times' if tf1.more > 1 else ''
  kinds = [distribution(draws.ops[0].op_type) for draws in found]
  at = _at(tf2, place.source.tf2_source, *place.source.tf2_lines)
  if kinds[0] == kinds[1]:
    text = (
      f'the port draws other random numbers of {_CALLS.get(kinds[0], kinds[0])} than tf1{times}: '
      f'{tf2.text}{at}, in tf1 {tf1.text}'
    )
  else:
    one, other = (_CALLS.get(kind, kind) for kind in kinds)
    text = (
      f'the port draws random numbers of another distribution than tf1{times}: {other}{at}, in tf1 '
      f'that of {one}'
    )
  at_tf1 = _at(tf1, place.source.tf1_source)
  return Cause(text, f'{tf1.text}{at_tf1} (tf1), {tf2.text}{at} (tf2)')


def _place_of(evidence: FailedStage, tf1: Draws, tf2: Draws) -> SourceEvidence | None:
  """Returns the first place that one of two draws leads to."""
  one, other = tf1.ops[0].op_type, tf2.ops[0].op_type
  found = (s for s in evidence.sources if one in s.source.tf1_path or other in s.source.tf2_path)
  return next(found, None)


def _at(draws: Draws, *lines: SourceLine | None) -> str:
  """Returns the line of a draw; of several, that which is shown at a place; '' if unknown."""
  known = dict.fromkeys(op.source for op in draws.ops if op.source is not None)
  shown = [one for one in known if len(known) == 1 or one in lines]
  return f' at {shown[0].short}' if len(shown) == 1 else ''
