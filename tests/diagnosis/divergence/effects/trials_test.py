import numpy as np
from absl.testing import absltest

from tests.diagnosis.hand_made import both
from tf2verify.diagnosis.divergence.effects.trials import Trials
from tf2verify.diagnosis.divergence.first_divergence import Divergence
from tf2verify.diagnosis.evidence.failed_stage import Standing
from tf2verify.diagnosis.patterns.graph_difference import GraphComparison

_INPUT = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


def scaled(factor, *chain, added=None):
  def build(made):
    net = made.chain(made.input(_INPUT), *chain)
    net = made.op('Mul', 'net', net, made.constant(np.float32(factor)))
    if added is not None:
      net = made.op('AddV2', 'sum', net, made.constant(np.float32(added)))
    made.target('output', net)

  return build


def standings(tf1, tf2):
  """Returns the standing of each constant at the first source."""
  one, other = (made.run() for made in both(tf1, tf2))
  divergence = Divergence(one, other, ['output'])
  comparison = GraphComparison(divergence.pairing)
  source = divergence.sources()[0]
  changes = comparison.changes(comparison.at(source.regions))
  return Trials(one, other).standings(source, changes)


class TrialsTest(absltest.TestCase):
  def test_a_constant_that_explains_it(self):
    self.assertEqual(standings(scaled(2.0), scaled(3.0)), [Standing.SOLE])

  def test_with_operations_that_one_side_lacks(self):
    self.assertEqual(standings(scaled(2.0), scaled(3.0, 'Relu')), [Standing.JOINT])

  def test_a_constant_without_effect(self):
    def build(slope, base):
      def made(side):
        start = side.input(_INPUT)
        net = side.op(
          'Scale',
          'net',
          start,
          side.constant(np.float32(base)),
          side.constant(np.float32(slope)),
          compute=lambda x, b, _: x * b,
        )
        side.target('output', net)

      return made

    self.assertEqual(standings(build(1.0, 2.0), build(5.0, 3.0)), [Standing.SOLE, Standing.REFUTED])

  def test_what_cannot_be_run_is_not_tried(self):
    def build(padding):
      def made(side):
        net = side.op(
          'Conv2D',
          'net',
          side.input(_INPUT),
          compute=lambda x: x * (2 if padding == 'SAME' else 3),
          padding=padding,
        )
        side.target('output', net)

      return made

    self.assertEqual(standings(build('SAME'), build('VALID')), [Standing.UNTRIED])


if __name__ == '__main__':
  absltest.main()
