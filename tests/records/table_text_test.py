from absl.testing import absltest

from tf2verify.records.table import Table
from tf2verify.records.table_text import table_lines


class TableLinesTest(absltest.TestCase):
  def test_columns_are_aligned(self) -> None:
    table = Table('modes', ('mode', 'outputs'), (('eager', 'equal'), ('tf.function', 'DIFFERS')))
    self.assertEqual(
      table_lines(table),
      ['modes:', '  mode         outputs', '  eager        equal', '  tf.function  DIFFERS'],
    )

  def test_long_tables_are_cut_and_say_so(self) -> None:
    rows = tuple((str(number),) for number in range(1200))
    lines = table_lines(Table('keys', ('key',), rows))
    self.assertLen(lines, 15)
    self.assertEqual(lines[-1], '  … and 1,188 more rows, see the JSON report (--report_dir)')

  def test_a_table_without_rows_shows_its_head(self) -> None:
    self.assertEqual(table_lines(Table('keys', ('key',), ())), ['keys:', '  key'])


if __name__ == '__main__':
  absltest.main()
