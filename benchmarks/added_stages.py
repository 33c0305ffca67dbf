"""What the stages beyond the gradients cost on the flagship.

    python -m benchmarks.added_stages [--model flagship]

climbs the whole ladder with a case that declares losses and optimizers, and prints
the seconds of each stage, how often each stage built a TF1 graph, and the peak of
memory after it. Exits with 1 when a stage does not pass, or when the stages beyond
the gradients build more than one TF1 graph.
"""

import argparse
import resource
import sys

import numpy as np

import tf2verify
from tf2verify.stages import STAGES

# isort: split
import tensorflow as tf

from benchmarks.small_case import SmallCase
from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase

v1 = tf.compat.v1


def _optimizer():
  return v1.train.RMSPropOptimizer(0.045, decay=0.9, momentum=0.9, epsilon=1.0)


class TrainedFlagship(InceptionResnetV2FullSizeCase):
  """The flagship, trained as slim trains it."""

  def make_labels(self):
    return np.array([3], np.int32)

  def tf1_loss(self, outputs, labels):
    return v1.losses.sparse_softmax_cross_entropy(labels, outputs[0])

  def tf2_loss(self, outputs, labels):
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    return loss(labels, outputs[0])

  def make_tf1_optimizer(self):
    return _optimizer()

  def make_tf2_optimizer(self):
    return _optimizer()


class TrainedSmall(SmallCase):
  """The small model, trained."""

  def make_tf1_optimizer(self):
    return _optimizer()

  def make_tf2_optimizer(self):
    return _optimizer()


_CASES = {'flagship': TrainedFlagship, 'small': TrainedSmall}


def main() -> int:
  """Climbs and prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--model', choices=sorted(_CASES), default='flagship')
  model = parser.parse_args().model
  builds = {stage.name: 0 for stage in STAGES}
  done: list[str] = []

  def count(step: str) -> None:
    if step.startswith('building the TF1'):
      builds[STAGES[len(done)].name] += 1

  print(f'{"stage":<24} {"status":<15} {"seconds":>8} {"TF1 builds":>11} {"peak MiB":>9}')

  def show(verdict: tf2verify.StageVerdict) -> None:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    name, status = verdict.stage, verdict.status.value
    done.append(name)
    cost = f'{verdict.seconds:8.2f} {builds[name]:11d} {peak:9.0f}'
    print(f'{name:<24} {status:<15} {cost}', flush=True)

  verdict = tf2verify.verify(_CASES[model], on_stage=show, progress=count)
  added = [stage.name for stage in STAGES][len(STAGES) - 5 :]
  builds_added = sum(builds[name] for name in added)
  print(f'TF1 graphs built beyond the gradients: {builds_added} (at most 1)')
  if verdict.status is not tf2verify.Status.PASSED:
    print(verdict.to_text())
    return 1
  return 0 if builds_added <= 1 else 1


if __name__ == '__main__':
  sys.exit(main())
