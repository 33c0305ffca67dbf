import io
import os

from absl.testing import absltest, parameterized

from tests.nasty import NASTY
from tf2verify.records.verdict import ErrorRecord
from tf2verify.safe_text import LONGEST_TEXT, message_of, safe, safe_line, safe_values, say, write


class SafeTextTest(parameterized.TestCase):
  @parameterized.parameters(
    (os.fsdecode(b'caf\xe9'), r'caf\xe9'),
    ('\ud800x', r'\ud800x'),
    ('\x1b[2Jred\x07\r', r'\x1b[2Jred\x07\x0d'),
    ("\x1b[1m'GRUCell' has no kernel\x1b[0m", "'GRUCell' has no kernel"),
    ('\x1b[\x1b[0m31mred', r'\x1b[31mred'),
    ('a\u202eb\u2066c\u200f', r'a\u202eb\u2066c\u200f'),
    ('\ufeff\u2028\U000e0041\U0001ffff', r'\ufeff\u2028\U000e0041\U0001ffff'),
    ('two\r\nlines\n\tmore', 'two\nlines\n\tmore'),
  )
  def test_what_is_not_shown_is_escaped(self, text, shown):
    self.assertEqual(safe(text), shown)
    self.assertEqual(safe(shown), shown)

  def test_what_is_shown_stays(self):
    for text in ('', 'dense/kernel:0', 'größer · 日本 → ✅ …', 'a\u200db', 'x' * LONGEST_TEXT):
      self.assertIs(safe(text), text)

  def test_nobody_reads(self):
    closed = io.StringIO()
    closed.close()
    write('text', closed)
    write('text', None)

  def test_a_line(self):
    self.assertEqual(safe_line('a\n\tb'), r'a\x0a\x09b')

  def test_lengths(self):
    for text in ('x' * 20_000_000, '\x1b' * 20_000_000, 'x\n' * 1_000_000):
      for shortened in (safe(text), safe_line(text)):
        self.assertLessEqual(len(shortened), LONGEST_TEXT)
        self.assertEqual(safe(shortened), shortened)
      self.assertIn('characters left out', safe(text))

  def test_records(self):
    record = ErrorRecord('tf1', 'fine', 'also')
    self.assertIs(safe_values(record), record)
    nest = {'a\x00': [(record, ErrorRecord('tf2', '\ud800'))], 'b': (1.5, None)}
    found = safe_values(nest)
    self.assertEqual(found, {r'a\x00': [(record, ErrorRecord('tf2', r'\ud800'))], 'b': (1.5, None)})
    self.assertIs(found['b'], nest['b'])

  def test_encodings(self):
    for encoding in ('ascii', 'latin-1', 'cp1252', 'utf-8'):
      stream = io.TextIOWrapper(io.BytesIO(), encoding)
      say(f'2 · 3 → 6 … {NASTY}', stream)
      shown = stream.buffer.getvalue().decode(encoding)
      self.assertIn({'ascii': '2 * 3 -> 6 ...'}.get(encoding, '2 · 3'), shown)

  def test_a_message_that_raises(self):
    class EvilError(ValueError):
      def __str__(self):
        raise KeyError(1)

    self.assertEqual(message_of(EvilError()), '(no message: its __str__ raised KeyError)')
    self.assertEqual(message_of(ValueError('x\x00')), r'x\x00')


if __name__ == '__main__':
  absltest.main()
