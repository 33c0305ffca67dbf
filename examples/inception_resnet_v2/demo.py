"""The flagship climbs the ladder, and its figures stand beside the published ones.

Published: TensorFlow's guide "Validate correctness & numerical equivalence" (run
by its authors on tf-nightly of December 2022), seed 42, 1000 classes, 299 x 299
pixels. The figures are regularization losses, which do not depend on the image;
they do depend on the order in which the model creates its variables.
"""

import sys

import tf2verify
from examples.inception_resnet_v2.full_size_case import InceptionResnetV2FullSizeCase
from tf2verify.report import terminal
from tf2verify.stages import STAGES

# Run of the ladder: the guide's TF1 and TF2 figures. In constant mode the guide
# shows the training run; its own constant fill is printed with fewer digits.
PUBLISHED = {
  "inference, the guide's constant 0.001": ('0.001182976', '0.0011829757'),
  'training, constant': ('1.2239965', '1.2239964'),
  'inference, num_random_ops': ('1.2254326', '1.2254325'),
  'training, num_random_ops': ('1.22548', '1.2254798'),
}
# The constant fill sums 290 losses near 4e-6: its last digits are those of a
# machine, so that five are compared there, and all of the others.
DIGITS = {"inference, the guide's constant 0.001": 5}

# The stages that the guide goes through; those behind them show no figure of it.
_STAGES = [stage.name for stage in STAGES[: [s.name for s in STAGES].index('gradients') + 1]]
_FULL_SIZE = 'examples/inception_resnet_v2/full_size_case.py'


def figure_lines(verdict: tf2verify.CaseVerdict) -> tuple[list[str], bool]:
  """Returns the table of figures, and whether all equal the published ones."""
  found = {figure.run: figure for stage in verdict.stages for figure in stage.figures}
  lines = [
    f'{"regularization loss":<40} {"tf1":>12} {"published":>12} {"tf2":>14} {"published":>12}'
  ]
  same = True
  for run, published in PUBLISHED.items():
    if run not in found:
      return [*lines, f'{run:<40} not reached'], False
    digits = DIGITS.get(run, 8)
    shown = [f'{value:.8g}' for value in (found[run].tf1, found[run].tf2)]
    agree = [
      f'{float(one):.{digits}g}' == f'{float(other):.{digits}g}'
      for one, other in zip(shown, published, strict=True)
    ]
    same = same and all(agree)
    mark = '' if all(agree) else '  DIFFERS'
    lines.append(
      f'{run:<40} {shown[0]:>12} {published[0]:>12} {shown[1]:>14} {published[1]:>12}{mark}'
    )
  return lines, same


def main() -> int:
  """Climbs to the gradients; returns 0 when all stages passed and all figures match."""
  print('Inception-ResNet-v2: 1,114 variables, 59 million parameters, 299 x 299 pixels')
  progress = terminal.StageProgress()
  shown = terminal.CaseShown(InceptionResnetV2FullSizeCase.__name__, progress)
  verdict = tf2verify.verify(InceptionResnetV2FullSizeCase, _STAGES, shown.stage, progress)
  shown.outcome(verdict)
  lines, same = figure_lines(verdict)
  print('\n' + '\n'.join(lines) + '\n')
  print(f'the whole ladder takes minutes: python -m tf2verify run {_FULL_SIZE}')
  return 0 if same and verdict.status is tf2verify.Status.PASSED else 1


if __name__ == '__main__':
  sys.exit(main())
