"""Tests of tf2verify.records.diagnosis_text."""

import dataclasses
import math

from absl.testing import absltest

from tf2verify.records.diagnosis import (
  Cause,
  Diagnosis,
  GraphAspect,
  GraphDifference,
  GrowthPoint,
  Source,
  Statistics,
)
from tf2verify.records.diagnosis_text import cause_lines, measure_lines, place_lines
from tf2verify.records.experiment import Edit, Experiment, Outcome
from tf2verify.records.observation import SourceLine

_STATISTICS = Statistics((4, 8), 'float32', -1.25, 2.0, 0.5, 0.25, 0)
_SLOPE = GraphDifference(GraphAspect.ATTRIBUTE, 'net/act', 'LeakyRelu', 'alpha', '0.2', '0.3')


def _source(**changes):
  values = {
    'tf1_op': 'net/act',
    'tf2_op': 'layer/net/act',
    'tf1_type': 'LeakyRelu',
    'tf2_type': 'LeakyRelu',
    'tf1_source': SourceLine('model.py', 3, 'net', 'x = leaky_relu(x)'),
    'tf2_source': None,
    'tf1_path': ('LeakyRelu',),
    'tf2_path': ('LeakyRelu',),
    'absolute': 0.25,
    'relative': 0.125,
    'alone': False,
    'tf1_output': _STATISTICS,
    'tf2_output': None,
    'differences': (_SLOPE,),
    **changes,
  }
  return Source(**values)


def diagnosis_lines(diagnosis):
  lines = [*cause_lines(diagnosis), *place_lines(diagnosis), *measure_lines(diagnosis)]
  return [line.text for line in lines]


def _text(**changes):
  return '\n'.join(diagnosis_lines(Diagnosis(**changes)))


class SourceLinesTest(absltest.TestCase):
  def test_further_lines_of_the_port(self):
    lines = tuple(SourceLine('there/port.py', number, 'call', 'x') for number in (7, 9))
    text = diagnosis_lines(Diagnosis('run', sources=(_source(tf2_lines=lines),)))
    self.assertIn('       also here: port.py:7, port.py:9', text)
    self.assertNotIn('also here', _text(sources=(_source(),)))

  def test_source(self):
    self.assertEqual(
      [line.text for line in place_lines(Diagnosis('run', sources=(_source(),)))],
      [
        'first divergence: net/act: its inputs agree, its outputs differ (max absolute difference '
        '0.25, 0.12 of max |tf1|)',
        '  tf1: model.py:3, in net: x = leaky_relu(x)',
        '       LeakyRelu; (4, 8) float32, -1.25 to 2, mean 0.5, 25 % zeros',
        '  tf2: LeakyRelu',
        '  net/act (LeakyRelu): alpha 0.2 (tf1), 0.3 (tf2)',
      ],
    )

  def test_name_of_the_port_is_shown_where_it_is_another(self):
    self.assertIn("net/act (tf2 'layer/leaky')", _text(sources=(_source(tf2_op='layer/leaky'),)))
    self.assertNotIn("(tf2 '", _text(sources=(_source(),)))

  def test_source_that_was_run_alone(self):
    text = _text(sources=(_source(alone=True),))
    self.assertIn('net/act: run alone on the inputs of tf1, its outputs differ', text)

  def test_shapes_that_differ(self):
    def text(**changed):
      other = dataclasses.replace(_STATISTICS, **changed)
      one = _source(relative=math.inf, absolute=math.inf, tf2_output=other)
      return _text(sources=(one,))

    self.assertIn('agree, its shapes differ: (4, 8) in tf1, (8, 4) in tf2', text(shape=(8, 4)))
    self.assertIn('agree, its dtypes differ: float32 in tf1, int32 in tf2', text(dtype='int32'))
    self.assertIn('agree, its non-finite elements differ', text(non_finite=1))
    unknown = _text(sources=(_source(relative=math.inf, absolute=math.inf),))
    self.assertIn('agree, shape, dtype or non-finite elements differ', unknown)

  def test_rule_that_the_values_follow(self):
    text = _text(sources=(_source(values='the port has the values of tf1 times 2'),))
    self.assertIn('  the port has the values of tf1 times 2', text)

  def test_elements_that_are_not_finite(self):
    statistics = Statistics((2,), 'float32', 1.0, 1.0, 1.0, 0.0, 1)
    self.assertIn(', 1 not finite', _text(sources=(_source(tf2_output=statistics),)))

  def test_paths(self):
    paths = {'tf1_path': ('Relu', 'MatMul'), 'tf2_path': ('target',)}
    text = _text(sources=(_source(tf1_source=None, **paths),))
    self.assertIn('tf1: Relu → MatMul', text)
    self.assertIn('tf2: passed through unchanged', text)
    text = _text(sources=(_source(tf1_path=tuple(f'Op{n}' for n in range(20))),))
    self.assertIn('Op5 → … 13 more → Op19', text)

  def test_three_sources_are_shown(self):
    sources = tuple(
      _source(
        tf1_op=f'op_{n}',
        tf2_op=f'op_{n}',
        differences=(dataclasses.replace(_SLOPE, tf2=f'0.{n}'),),
      )
      for n in range(5)
    )
    text = _text(sources=sources)
    self.assertIn('first divergence: op_0', text)
    self.assertIn('then: op_2', text)
    self.assertIn('… and 2 more, see the JSON report: op_3, op_4', text)
    self.assertNotIn('the same at', text)

  def test_sources_of_one_difference_are_shown_once(self):
    sources = tuple(_source(tf1_op=f'op_{n}', tf2_op=f'op_{n}') for n in range(6))
    text = _text(sources=sources)
    self.assertIn('  the same at 5 more: op_1, op_2, op_3, …', text)
    self.assertNotIn('then:', text)

  def test_sources_about_which_nothing_is_known_are_kept_apart(self):
    text = _text(sources=tuple(_source(tf1_op=f'op_{n}', differences=()) for n in range(2)))
    self.assertIn('then: op_1', text)

  def test_an_operation_without_a_partner_is_named_first(self):
    text = _text(sources=(_source(tf1_first='net/pool/MaxPool'),))
    self.assertIn('first divergence: net/pool/MaxPool, on the way to net/act: its inputs', text)
    text = _text(sources=(_source(tf2_first='layer/mul'),))
    self.assertIn("first divergence: 'layer/mul' of tf2, on the way to net/act", text)

  def test_six_differences_are_shown(self):
    slopes = tuple(dataclasses.replace(_SLOPE, tf2=f'0.{n}') for n in range(3, 11))
    text = _text(sources=(_source(differences=slopes),))
    self.assertEqual(text.count('alpha'), 6)
    self.assertIn('… and 2 more', text)

  def test_a_difference_that_is_met_again_is_shown_once(self):
    text = _text(sources=(_source(differences=(_SLOPE,) * 8),))
    self.assertEqual(text.count('alpha'), 1)
    self.assertNotIn('more', text)


class DifferenceTest(absltest.TestCase):
  def _line(self, aspect, what='', tf1='one', tf2='two'):
    difference = GraphDifference(aspect, 'net/op', 'Op', what, tf1, tf2)
    [line] = place_lines(Diagnosis(gradient_differences=(difference,)))
    return line.text

  def test_every_aspect(self):
    for aspect, line in (
      (GraphAspect.TYPE, 'net/op: one (tf1), two (tf2)'),
      (GraphAspect.ATTRIBUTE, 'net/op (Op): w one (tf1), two (tf2)'),
      (GraphAspect.CONSTANT, 'net/op (Op): w one (tf1), two (tf2)'),
      (GraphAspect.MISSING, 'missing in tf2: one, which w'),
      (GraphAspect.EXTRA, 'extra in tf2: two, which w'),
      (GraphAspect.REPLACED, 'tf1 computes one, tf2 computes two'),
      (GraphAspect.ORDER, 'net/op (Op): order of inputs, w one (tf1), two (tf2)'),
      (GraphAspect.WIRING, 'net/op (Op): wiring, w one (tf1), two (tf2)'),
      (GraphAspect.GRADIENT, 'net/op (Op): w one (tf1), two (tf2)'),
      (GraphAspect.CORRECTED, 'net/op (Op): w two (tf2), one (corrected)'),
    ):
      with self.subTest(aspect.value):
        tf1 = '' if aspect is GraphAspect.EXTRA else 'one'
        tf2 = '' if aspect is GraphAspect.MISSING else 'two'
        self.assertEqual(self._line(aspect, 'w', tf1, tf2), f'gradient path: {line}')

  def test_long_texts_are_cut(self):
    line = self._line(GraphAspect.MISSING, tf1='x' * 500, tf2='')
    self.assertLess(len(line), 250)
    self.assertEndsWith(line, '…')


class CauseTest(absltest.TestCase):
  def test_causes_come_first(self):
    causes = tuple(Cause(f'text {n}', f'evidence {n}', f'rule_{n}') for n in range(4))
    lines = diagnosis_lines(Diagnosis(causes=causes, sources=(_source(),)))
    self.assertEqual(lines[:2], ['likely cause: text 0', '  seen: evidence 0'])
    self.assertEqual(sum(line.startswith('likely cause') for line in lines), 3)

  def test_a_mistake_that_only_its_place_tells_is_counted(self):
    one, other = (
      Experiment(edit, 'text', Outcome.PARTLY, number, 2, 0.1, 4, 1, 1)
      for number, edit in ((1, Edit.SETTING), (2, Edit.VALUE))
    )
    line = SourceLine('port.py', 7, 'call', 'x')
    sources = (_source(experiment=one), _source(experiment=other, tf2_source=line))
    lines = diagnosis_lines(Diagnosis(causes=(Cause('text', experiment=one),), sources=sources))
    self.assertStartsWith(lines[0], 'likely cause 1 of 2')
    self.assertRegex(
      lines[1], r'^likely cause 2 of 2 .*: what differs at port.py:7; no known mistake matches it$'
    )

  def test_mistakes_are_told_in_the_order_of_their_numbers(self):
    one, other = (
      Experiment(Edit.SETTING, 'text', Outcome.PARTLY, number, 2, 0.1, 4, 1, 1) for number in (1, 2)
    )
    sources = (_source(experiment=one), _source(experiment=other))
    lines = diagnosis_lines(Diagnosis(causes=(Cause('text', experiment=other),), sources=sources))
    self.assertStartsWith(lines[0], 'likely cause 1 of 2')
    self.assertStartsWith(lines[1], 'likely cause 2 of 2')

  def test_a_mistake_at_several_places_is_told_once(self):
    def known(number, predicts):
      tried = Experiment(Edit.SETTING, 'text', Outcome.PROVEN, number, 3, 0.0, 0, 1, 0)
      return Cause('the rate is 0.1', experiment=tried, predicts=predicts)

    lines = diagnosis_lines(Diagnosis(causes=(known(1, False), known(3, True))))
    (line,) = (line for line in lines if 'the rate is 0.1' in line)
    self.assertStartsWith(line.strip(), 'causes 1 and 3 of 3 (proven: ')

  def test_without_a_cause_it_is_said(self):
    self.assertEqual(_text(), 'no known mistake matches')
    self.assertIn('at what differs in the graphs there', _text(sources=(_source(),)))
    without = _text(sources=(_source(differences=()),))
    self.assertStartsWith(without, 'no known mistake matches: look at the two lines')
    self.assertNotIn('graphs', without)

  def test_no_cause_is_not_called_one(self):
    for sources in ((), (_source(),), (_source(differences=()),)):
      self.assertNotIn('likely cause', _text(sources=sources))

  def test_initial_values_are_called_so(self):
    source = _source(tf1_type='variable', absolute=2.0, relative=1.0)
    self.assertIn(
      'initial values differ (max absolute difference 2, 1 of max |tf1|)', _text(sources=(source,))
    )
    source = _source(tf1_type='variable', absolute=2.0, relative=math.inf)
    self.assertIn(
      'initial values differ (max absolute difference 2; 0 in tf1)\n', _text(sources=(source,))
    )


class RestTest(absltest.TestCase):
  def test_growth(self):
    points = tuple(GrowthPoint(f'op_{n}', 10.0 ** (n - 7)) for n in range(8))
    [line] = [
      line for line in _text(growth=points).splitlines() if 'relative difference from' in line
    ]
    self.assertIn('▁▂▃▄▅▆▇█', line)
    self.assertIn('1e-07 to 1 at op_7', line)

  def test_growth_of_zero_and_infinity(self):
    points = tuple(GrowthPoint('op', size) for size in (0.0, math.inf, math.nan, 1e-30))
    self.assertIn(':  █', _text(growth=points))

  def test_short_growth_is_not_drawn(self):
    self.assertNotIn(
      'relative difference from', _text(growth=(GrowthPoint('a', 1.0), GrowthPoint('b', 1.0)))
    )

  def test_updates(self):
    text = _text(updates=(('mean', 1, 0), ('variance', 2, 3)))
    self.assertIn('mean is written once per call in tf1, never in tf2', text)
    self.assertIn('variance is written twice per call in tf1, 3 times in tf2', text)

  def test_unpaired_operations_are_counted(self):
    self.assertIn('1,000 of 1,200 tf1 operations', _text(operations=1200, paired=1000))
    self.assertNotIn('have a match', _text(operations=1200, paired=1200))

  def test_notes(self):
    self.assertEqual(
      diagnosis_lines(Diagnosis(notes=('the port\nis odd',)))[-1], 'note: the port is odd'
    )


if __name__ == '__main__':
  absltest.main()
