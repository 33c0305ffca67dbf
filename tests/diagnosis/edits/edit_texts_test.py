"""Tests of tf2verify.diagnosis.edits.edit_texts."""

import dataclasses

from absl.testing import absltest, parameterized

from tests.records.diagnosis_text_test import _source as _record
from tf2verify.diagnosis.edits import edit_texts
from tf2verify.records.diagnosis import GraphAspect, GraphDifference
from tf2verify.records.observation import SourceLine


class ReplacedTest(parameterized.TestCase):
  @parameterized.parameters(
    ('Mul → Relu', 'Relu → Mul', 'the port computes Relu → Mul, tf1 the same in a different order'),
    ('Relu', 'Elu', 'the port computes Elu, tf1 computes Relu'),
    ('Mul → Reshape', 'Reshape', 'the port lacks Mul → Reshape'),
    ('Reshape', 'Mul', 'the port has Mul, which tf1 does not have'),
  )
  def test_text(self, tf1, tf2, text):
    self.assertStartsWith(edit_texts._replaced(tf1, tf2), text)


class ExchangedTest(absltest.TestCase):
  def _text(self, *known):
    sources = [
      dataclasses.replace(_record(), tf1_op=f'net/{name}', differences=(one,))
      for name, one in zip(('mean', 'end'), known, strict=True)
    ]
    return edit_texts.edit_text(sources)

  def test_an_activation_before_a_normalization(self):
    extra = GraphDifference(GraphAspect.EXTRA, 'Relu', 'Relu', '', '', 'Relu')
    end = GraphDifference(GraphAspect.TYPE, 'end', 'Relu', '', 'Relu', 'AddV2', 'Relu', 'AddV2')
    self.assertEqual(
      self._text(extra, end),
      'the port computes Relu before net/mean, and tf1 after it, at net/end, where the port has '
      'AddV2: exchange the two in the port',
    )
    self.assertIn('the port computes Relu after net/end, and tf1 before', self._text(end, extra))

  def test_a_normalization_before_an_activation(self):
    lacks = GraphDifference(GraphAspect.MISSING, 'Relu', 'Relu', '', 'Relu', '')
    end = GraphDifference(GraphAspect.TYPE, 'end', 'AddV2', '', 'AddV2', 'Relu', 'AddV2', 'Relu')
    self.assertStartsWith(self._text(lacks, end), 'tf1 computes Relu before net/mean, and the port')

  def test_something_else(self):
    extra = GraphDifference(GraphAspect.EXTRA, 'Tanh', 'Tanh', '', '', 'Tanh')
    end = GraphDifference(GraphAspect.TYPE, 'end', 'Relu', '', 'Relu', 'AddV2', 'Relu', 'AddV2')
    self.assertNotIn('exchange', self._text(extra, end))


class ValuesTest(absltest.TestCase):
  """What becomes of the values is said where a list of operations would say less."""

  def _source(self, steps, values):
    chain = ' → '.join(['Range', 'Less', 'Tile', 'Select', 'Pack', 'Fill', 'Cast'][:steps])
    known = GraphDifference(GraphAspect.MISSING, 'rnn/range', 'Range', '', chain, '')
    record = _record()
    return dataclasses.replace(record, differences=(known,), values=values)

  def test_values_come_before_a_long_list(self):
    zeros = 'tf1 has zeros'
    text = edit_texts.edit_text([self._source(7, zeros)])
    self.assertStartsWith(text, f'net/act: {zeros}; the port lacks Range →')
    self.assertStartsWith(edit_texts.edit_text([self._source(3, zeros)]), 'the port lacks Range →')
    self.assertStartsWith(edit_texts.edit_text([self._source(7, '')]), 'the port lacks Range →')

  def test_values_of_several_places(self):
    sources = [self._source(7, text) for text in ('tf1 has zeros', 'tf1 has zeros', '', 'times 2')]
    self.assertEqual(edit_texts.values_text(sources), 'net/act: tf1 has zeros; net/act: times 2')
    self.assertEqual(edit_texts.values_text(sources[2:3]), '')


class WiringTest(absltest.TestCase):
  def test_layers_that_one_line_calls_are_told_once(self):
    lines = {
      f'{side}_source': SourceLine(f'{side}.py', 7, 'call', 'a + b') for side in ('tf1', 'tf2')
    }
    sources = [
      dataclasses.replace(
        _record(),
        tf1_op=f'head_{n}/add',
        differences=(
          GraphDifference(
            GraphAspect.WIRING, f'head_{n}/add', 'AddV2', 'x', f'h{n}/f1', f'net_{n}/f2'
          ),
        ),
        **lines,
      )
      for n in range(3)
    ]
    text = edit_texts.edit_text(sources)
    self.assertIn('head_0/add', text)
    self.assertNotIn('head_1/add', text)
    self.assertEndsWith(text, '; the same at 2 more')
    elsewhere = dataclasses.replace(sources[2], tf2_source=SourceLine('tf2.py', 8, 'call', 'c'))
    self.assertIn('head_2/add', edit_texts.edit_text([*sources[:2], elsewhere]))


class NeedlessTest(absltest.TestCase):
  """Places of one edit that say less, or the same with more around it."""

  def _text(self, *known):
    sources = [
      dataclasses.replace(
        _record(),
        tf1_op=f'net/act_{number}',
        differences=(GraphDifference(aspect, 'net/act', 'Mul', '', tf1, tf2),),
      )
      for number, (aspect, tf1, tf2) in enumerate(known)
    ]
    return edit_texts.edit_text(sources)

  def test_what_is_lacking_and_extra_is_told_by_the_order(self):
    missing, extra = (GraphAspect.MISSING, 'Tanh', ''), (GraphAspect.EXTRA, '', 'Tanh')
    order = GraphAspect.REPLACED, 'Tanh → Mul', 'Mul → Tanh'
    expected = 'the port computes Mul → Tanh, tf1 the same in a different order: Tanh → Mul'
    self.assertEqual(self._text(missing, extra, order), expected)
    self.assertEqual(
      self._text(missing, extra), 'the port lacks Tanh; the port has Tanh, which tf1 does not have'
    )

  def test_what_is_moved_is_told_once_and_is_not_extra(self):
    def known(aspect, tf1, tf2, elsewhere):
      types = (('Mul',), ()) if tf1 else ((), ('Mul',))
      found = GraphDifference(aspect, 'net/act', 'Mul', '', tf1, tf2, *types, elsewhere)
      return dataclasses.replace(_record(), tf1_op=f'net/{aspect.value}', differences=(found,))

    extra = known(GraphAspect.EXTRA, '', 'Mul', 'bn/mul (model.py:4)')
    missing = known(GraphAspect.MISSING, 'Mul', '', 'layer/bn/mul')
    one = (
      'the port has Mul (net/act) at another place than tf1, which has it at bn/mul (model.py:4)'
    )
    self.assertEqual(edit_texts.edit_text([extra]), one)
    self.assertEqual(edit_texts.edit_text([missing, extra]), one)
    self.assertStartsWith(edit_texts.edit_text([missing]), 'tf1 has Mul (net/act) at another place')

  def test_a_slice_that_only_adds_an_axis_is_not_told(self):
    for path, text in (
      ('Sub(y=1) → StridedSlice[None, :]', 'Sub(y=1)'),
      ('StridedSlice[..., None]', 'StridedSlice[..., None]'),
      ('Sub(y=1) → StridedSlice[:, ::-1]', 'Sub(y=1) → StridedSlice[:, ::-1]'),
    ):
      self.assertEqual(self._text((GraphAspect.MISSING, path, '')), f'the port lacks {text}')

  def test_a_list_with_all_of_another_place_is_not_told(self):
    short = GraphAspect.EXTRA, '', 'StridedSlice[:, 1::2]'
    longer = (
      GraphAspect.REPLACED,
      'Mul → StridedSlice[:, ::-1]',
      'StridedSlice[:, 1::2] → Mul → ReverseV2(axis=[1])',
    )
    expected = 'the port has StridedSlice[:, 1::2], which tf1 does not have'
    self.assertEqual(self._text(short, longer), expected)
    # Of other operations both are told.
    self.assertIn('; the port computes', self._text((GraphAspect.EXTRA, '', 'Relu'), longer))


class LinesTest(absltest.TestCase):
  """Of a large region the user's lines on both sides are said."""

  def _source(self, **fields):
    one = SourceLine('/a/model.py', 85, 'targets', 'rewards = clip(labels)')
    other = SourceLine('/a/port.py', 129, 'returns', 'total = total + rewards')
    further = (
      dataclasses.replace(other, line=131, code='return clip(total)'),
      SourceLine('/a/other.py', 5, 'f', 'x = 1'),
    )
    known = {'tf1_source': one, 'tf2_source': other, 'tf2_lines': further, **fields}
    return dataclasses.replace(_record(), **known)

  def test_text(self):
    self.assertEqual(
      edit_texts.lines_text([self._source(), self._source()]),
      'at these lines (the operation was not identified): port.py:129 (`total = total + rewards`, '
      'with port.py:131) computes something other than model.py:85 (`rewards = clip(labels)`)',
    )

  def test_nothing_where_a_line_is_not_known(self):
    start = SourceLine('/a/port.py', 120, 'returns', 'x = reshape(rewards)')
    self.assertEqual(
      edit_texts.lines_text([self._source(tf2_start=start)]),
      'at these lines (the operation was not identified): port.py:120 (`x = reshape(rewards)`) to '
      'port.py:129 (`total = total + rewards`) computes something other than '
      'model.py:85 (`rewards = clip(labels)`)',
    )
    self.assertEqual(edit_texts.lines_text([self._source(tf1_source=None)]), '')
    self.assertEqual(edit_texts.lines_text([self._source(tf2_source=None)]), '')


if __name__ == '__main__':
  absltest.main()
