"""The ladder on one model in a process of its own, for `benchmarks/ladder.py`.

python benchmarks/climb.py {flagship,small}
"""

import sys

import tf2verify


def main(model: str) -> int:
  """Climbs all six stages; returns 0 when they passed."""
  if model == 'flagship':
    from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase as case
  else:
    from benchmarks.small_case import SmallCase as case
  verdict = tf2verify.verify(case)
  print(verdict.to_text())
  return 0 if verdict.status is tf2verify.Status.PASSED else 1


if __name__ == '__main__':
  sys.exit(main(sys.argv[1]))
