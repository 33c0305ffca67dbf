"""What a diagnosis costs on the flagship, beside the ladder itself.

    python -m benchmarks.diagnosis [--faults scale gradient]

plants a fault in Inception-ResNet-v2 at 299 x 299 (the scale of one residual block
of the port, or half of the logits' gradient), climbs the ladder and prints the time
of the diagnosis, of the ladder without a fault, and the peak of memory. Targets: at
most 0.3 times the ladder's time, and 1.3 times its peak.
"""

import argparse
import os
import resource
import subprocess
import sys
import time
from typing import Any

import tensorflow as tf

import tf2verify
from examples.inception_resnet_v2 import full_size_case, model, port

_BLOCK = 7
_WRONG_SCALE = 0.17


class WrongScale(port.InceptionResnetV2):
  """One of the twenty blocks of the second kind has the scale of the first kind."""

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: Any, training: bool = False) -> Any:
    """Returns logits and end points."""
    right, blocks = model.block17, []

    def block17(net: Any, scale: float, scope: str | None = None) -> Any:
      blocks.append(scope)
      return right(net, _WRONG_SCALE if len(blocks) == _BLOCK else scale, scope)

    model.block17 = block17
    try:
      return model.inception_resnet_v2(inputs, self.num_classes, is_training=training)
    finally:
      model.block17 = right


class WrongGradient(port.InceptionResnetV2):
  """Half of the logits' gradient is stopped."""

  @tf.compat.v1.keras.utils.track_tf1_style_variables
  def call(self, inputs: Any, training: bool = False) -> Any:
    """Returns logits and end points."""
    logits, ends = model.inception_resnet_v2(inputs, self.num_classes, is_training=training)
    return 0.5 * logits + 0.5 * tf.stop_gradient(logits), ends


_FAULTS = {'none': port.InceptionResnetV2, 'scale': WrongScale, 'gradient': WrongGradient}


def climb(fault: str) -> None:
  """Climbs the ladder with one fault, and prints its costs in seconds and MiB."""

  class Case(full_size_case.InceptionResnetV2FullSizeCase):
    def make_tf2_layer(self) -> Any:
      return _FAULTS[fault](self.num_classes)

  start = time.perf_counter()
  verdict = tf2verify.verify(Case)
  total = time.perf_counter() - start
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
  failed = verdict.first_failure
  diagnosis = 0.0
  if failed is not None:
    print(failed.to_text(), file=sys.stderr)
    diagnosis = failed.diagnosis.seconds if failed.diagnosis is not None else 0.0
  print(f'{total:.1f} {diagnosis:.1f} {peak:.0f} {failed.stage if failed is not None else "-"}')


def _measured(fault: str) -> tuple[float, float, float, str]:
  output = subprocess.run(
    [sys.executable, '-m', 'benchmarks.diagnosis', '--climb', fault],
    stdout=subprocess.PIPE,
    check=True,
    text=True,
    cwd=os.path.dirname(os.path.dirname(os.path.abspath(__file__))),
  ).stdout
  total, diagnosis, peak, stage = output.strip().splitlines()[-1].split()
  return float(total), float(diagnosis), float(peak), stage


def main() -> int:
  """Measures and prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument(
    '--faults', nargs='+', choices=('scale', 'gradient'), default=['scale', 'gradient']
  )
  parser.add_argument('--climb', choices=sorted(_FAULTS), help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.climb:
    climb(arguments.climb)
    return 0
  ladder, _, ladder_peak, _ = _measured('none')
  print(f'ladder alone: {ladder:.1f} s, {ladder_peak:.0f} MiB')
  missed = 0
  for fault in arguments.faults:
    total, diagnosis, peak, stage = _measured(fault)
    missed += diagnosis > 0.3 * ladder or peak > 1.3 * ladder_peak
    print(
      f'{fault}: {stage} fails, {total:.1f} s in all, diagnosis {diagnosis:.1f} s '
      f'({diagnosis / ladder:.2f} of the ladder, target 0.3), peak {peak:.0f} MiB '
      f'({peak / ladder_peak:.2f}, target 1.3)',
      flush=True,
    )
  return 1 if missed else 0


if __name__ == '__main__':
  sys.exit(main())
