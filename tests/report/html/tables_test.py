from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.records.difference import Aspect, Difference
from tf2verify.records.side_by_side import RandomOps, VariablePair
from tf2verify.records.status import Status
from tf2verify.records.verdict import CaseVerdict, Compared, StageVerdict
from tf2verify.report.html.tables import (
  case_tables,
  random_ops_table,
  tensor_counts,
  variable_counts,
)


def _case(stage):
  return CaseVerdict('Case', 'case.py', (stage,))


def _rows(table):
  heads = [column.head for column in table.columns]
  return [dict(zip(heads, row, strict=True)) for row in table.rows]


class TensorsTest(absltest.TestCase):
  def test_every_deviation_has_a_row(self):
    table = case_tables(made_up.failed())['tensors']
    self.assertLen(table.rows, 33)
    self.assertEqual(table.columns[table.order].head, 'difference / allowed')
    first = _rows(table)[0]
    self.assertEqual(first['tensor'], 'dense/kernel')
    self.assertEqual(
      (first['max absolute difference'], first['max relative difference']), (0.25, 0.5)
    )
    self.assertAlmostEqual(first['difference / allowed'], 0.25 / 1.05e-5)
    self.assertEqual((first['rounding noise'], first['judged']), (1e-7, 'failed'))
    self.assertGreater(first['would pass with atol'], 0.2499)
    self.assertEqual(first['units in the last place'], (5, 3, 0, 1))

  def test_counts_say_what_is_not_listed(self):
    self.assertEqual(
      tensor_counts(made_up.failed()),
      (
        '5 seeded_num_random_ops: 2 compared; 0 listed here, 2 the same bit by bit',
        '6 gradients: 60 compared; 33 listed here, 27 the same bit by bit',
      ),
    )

  def test_a_shape_is_no_deviation_and_not_the_same(self):
    found = Difference('output', 'x', Aspect.SHAPE, '(1)', '(2)')
    stage = StageVerdict('gradients', 6, Status.FAILED, Compared(3), (found,))
    self.assertEqual(
      tensor_counts(_case(stage)),
      (
        '6 gradients: 3 compared; 0 listed here, 2 the same bit by bit, 1 only among the '
        'differences',
      ),
    )

  def test_a_stage_that_keeps_less_says_so(self):
    stage = StageVerdict('loss', 7, Status.PASSED, Compared(3))
    self.assertIn('keeps only those that differ', tensor_counts(_case(stage))[0])


class InventoryTest(absltest.TestCase):
  def test_what_differs_comes_first(self):
    rows = _rows(case_tables(made_up.failed())['inventory'])
    self.assertEqual(
      [(row['tf1 variable'], row['tf2 variable'], row['remark']) for row in rows],
      [
        ('missing', 'extra', 'only in tf2'),
        ('beta', 'norm/beta', 'renamed and trained on one side only'),
        ('dense/kernel', 'dense/kernel', ''),
      ],
    )
    self.assertEqual(
      variable_counts(made_up.failed()),
      ('1 alike, 1 renamed and trained on one side only, 1 only in tf2', 2),
    )

  def test_remarks(self):
    one = made_up.variable('w')
    for tf1, tf2, said, remark in (
      (one, one, '', ''),
      (one, made_up.variable('w', shape=(None, 3)), '', 'different shape'),
      (None, one, 'untracked', 'only in tf2 and untracked'),
      (one, None, 'the global step', 'the global step'),
      (one, None, '', 'only in tf1'),
    ):
      with self.subTest(remark):
        stage = StageVerdict(
          'variable_inventory', 2, Status.PASSED, inventory=(VariablePair(tf1, tf2, said),)
        )
        self.assertEqual(_rows(case_tables(_case(stage))['inventory'])[0]['remark'], remark)


class OthersTest(absltest.TestCase):
  def test_random_ops_as_a_diff(self):
    [ops] = made_up.failed().stages[2].random_ops
    rows = _rows(random_ops_table(ops))
    self.assertEqual(
      [(row['tf1'], row['tf2'], row['remark']) for row in rows],
      [
        ('A (2)', 'A (2)', ''),
        ('', 'C (4)', 'only in tf2'),
        ('B (3)', 'B (3)', ''),
        ('C (4)', '', 'only in tf1'),
      ],
    )
    self.assertEqual((rows[2]['tf1 no.'], rows[2]['tf2 no.']), (1, 2))

  def test_random_ops_that_are_alike(self):
    ops = RandomOps('training', ('A',), ('A',), ('',), ('',))
    self.assertEqual(_rows(random_ops_table(ops))[0]['remark'], '')

  def test_differences_of_values_and_of_texts(self):
    tables = case_tables(made_up.failed())
    self.assertEqual(
      set(tables),
      {
        'differences',
        'growth-gradients',
        'inventory',
        'random-seeded_num_random_ops-0',
        'tensors',
        'training_steps-0',
      },
    )
    row = _rows(tables['differences'])[0]
    self.assertEqual((row['tf1'], row['elements that differ']), ('0.5 at (1, 2)', '1 of 6'))
    self.assertEqual(row['allowed'], '1e-05 + 1e-06·|tf1|')
    text = Difference('variable', 'w', Aspect.PRESENCE, '(2, 3) float32', 'missing', hint='why')
    stage = StageVerdict('variable_inventory', 2, Status.FAILED, differences=(text,))
    [row] = _rows(case_tables(_case(stage))['differences'])
    self.assertEqual((row['tf2'], row['likely cause']), ('missing', 'why'))

  def test_a_case_without_anything_has_no_table(self):
    stage = StageVerdict('loss', 7, Status.NOT_APPLICABLE, reason='none')
    self.assertEqual(case_tables(_case(stage)), {})


if __name__ == '__main__':
  absltest.main()
