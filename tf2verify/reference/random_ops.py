"""Which ops draw random numbers."""

# Random ops that carry their seeds as attributes or as inputs; the key and
# counter ops of the stateless family draw nothing.
_RANDOM_WORDS = (
  'Random',
  'TruncatedNormal',
  'Multinomial',
  'StatefulUniform',
  'StatefulStandard',
  'CandidateSampler',
  'SampleDistortedBoundingBox',
  'ShuffleV2',
)
_NOT_RANDOM = ('GetKeyCounter', 'GetAlg', 'RandomDataset', 'RandomSeedGenerator')


def is_random_op(op_type: str) -> bool:
  """Returns whether ops of this type draw random numbers."""
  drawing = any(word in op_type for word in _RANDOM_WORDS)
  return drawing and not any(word in op_type for word in _NOT_RANDOM)
