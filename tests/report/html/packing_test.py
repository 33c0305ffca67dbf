import base64
import gzip
import json
import math
import string

from absl.testing import absltest

from tests.report.html import made_up
from tf2verify.report.html.packing import Column, PackedTable, packed


def unpacked(text):
  """Returns what the page's script reads."""
  return json.loads(gzip.decompress(base64.b64decode(text)))


def _column(values, kind='number'):
  rows = tuple((value,) for value in values)
  table = unpacked(packed({'t': PackedTable('caption', (Column('head', kind),), rows)}))
  return table['t'], table['']


class PackingTest(absltest.TestCase):
  def test_numbers(self):
    table, _ = _column((1.23456e-7, 0.0, 3, None, math.inf, -math.inf, math.nan, 123456.0))
    shown = [1.23e-7, 0, 3, None, 'inf', '-inf', 'nan', 123000]
    self.assertEqual(table['columns'][0]['values'], shown)

  def test_texts_are_told_once(self):
    table, words = _column(('a', 'b', 'a'), 'text')
    self.assertEqual([words[n] for n in table['columns'][0]['values']], ['a', 'b', 'a'])
    self.assertLen(words, 2)

  def test_histograms_within_a_tenth(self):
    counts = (0, 1, 16, 17, 437, 16384, 32768)
    [letters] = _column((counts,), 'ulps')[0]['columns'][0]['values']
    alphabet = string.digits + string.ascii_letters
    self.assertEqual([alphabet.index(letter) for letter in letters[:3]], [0, 1, 16])
    for letter, count in zip(letters[3:], counts[3:], strict=True):
      self.assertLess(abs(16 * 1.2 ** (alphabet.index(letter) - 16) / count - 1), 0.1)

  def test_a_column_without_anything_is_left_out(self):
    table, _ = _column((None, None))
    self.assertEqual((table['columns'], table['same'], table['rows']), ([], [], 2))

  def test_a_column_of_one_text_is_said_once(self):
    table, _ = _column(('a', 'a'), 'text')
    self.assertEqual((table['columns'], table['same']), ([], [['head', 'a']]))

  def test_a_single_row_and_equal_numbers_stay(self):
    self.assertLen(_column(('a',), 'text')[0]['columns'], 1)
    self.assertLen(_column((2.0, 2.0))[0]['columns'], 1)

  def test_order_follows_its_column(self):
    columns = Column('gone'), Column('key', 'number')
    rows = (('a', 1.0), ('a', 2.0))
    table = unpacked(packed({'t': PackedTable('c', columns, rows, order=1)}))['t']
    self.assertEqual(table['order'], 0)

  def test_nothing_in_it_can_end_a_script(self):
    columns, rows = (Column('head'),), ((made_up.EVIL,), ('other',))
    text = packed({'t': PackedTable(made_up.EVIL, columns, rows)})
    self.assertRegex(text, r'^[A-Za-z0-9+/=]+$')
    self.assertEqual(unpacked(text)['t']['caption'], made_up.EVIL)
    self.assertEqual(text, packed({'t': PackedTable(made_up.EVIL, columns, rows)}))


if __name__ == '__main__':
  absltest.main()
