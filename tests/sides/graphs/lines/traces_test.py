"""Tests of tf2verify.sides.graphs.lines.traces."""

from absl.testing import absltest

from tf2verify.sides.graphs.lines.traces import Trace, retraced

_CALLS = (('call 1', False), ('call 2', False), ('call 3', True), ('call 4', True))


def _retraced(*traces):
  made = [Trace(function, call, None) for function, call in traces]
  return [(trace.function, trace.call) for trace in retraced(_CALLS, made)]


class RetracedTest(absltest.TestCase):
  def test_in_a_call_that_repeats_another(self):
    self.assertEqual(_retraced(('f', 'call 1'), ('f', 'call 2')), [('f', 'call 2')])

  def test_twice_in_one_call(self):
    self.assertEqual(
      _retraced(('f', 'call 3'), ('f', 'call 4'), ('f', 'call 4')), [('f', 'call 4')]
    )

  def test_once_in_each_mode(self):
    self.assertEqual(_retraced(('f', 'call 1'), ('f', 'call 3')), [])

  def test_twice_in_the_first_call(self):
    self.assertEqual(_retraced(('f', 'call 1'), ('f', 'call 1')), [])

  def test_another_function(self):
    self.assertEqual(_retraced(('f', 'call 1'), ('g', 'call 2')), [])


if __name__ == '__main__':
  absltest.main()
