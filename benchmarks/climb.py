"""The ladder on one model in a process of its own, for `benchmarks/ladder.py`.

python benchmarks/climb.py {flagship,small}
"""

import sys

import tf2verify

# By name: to import them here is not what a user does, whose imports tf2verify makes faster.
_STAGES = (
  'no_new_variables',
  'variable_inventory',
  'zero_randomness',
  'seeded_constant',
  'seeded_num_random_ops',
  'gradients',
)


def main(model: str) -> int:
  """Climbs the stages that are also done by hand, to the gradients; returns 0 when they passed."""
  if model == 'flagship':
    from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase as case
  else:
    from benchmarks.small_case import SmallCase as case
  verdict = tf2verify.verify(case, _STAGES)
  print(verdict.to_text())
  return 0 if verdict.status is tf2verify.Status.PASSED else 1


if __name__ == '__main__':
  sys.exit(main(sys.argv[1]))
