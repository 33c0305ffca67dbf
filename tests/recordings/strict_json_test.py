"""Tests of strict JSON."""

from absl.testing import absltest, parameterized

from tf2verify.recordings.fields import Malformed
from tf2verify.recordings.strict_json import canonical, loads


class StrictJsonTest(parameterized.TestCase):
  def test_json(self):
    self.assertEqual(loads('{"a": [1, -2.5, "ä", null, true]}'.encode()), {'a': _VALUES})

  @parameterized.parameters(
    (b'{"a": 1, "a": 2}', "has the key 'a' twice"),
    (b'[NaN]', 'holds NaN'),
    (b'[-Infinity]', 'holds -Infinity'),
    (b'[1e999]', 'which no float holds'),
    (b'[' + b'7' * 30 + b']', 'a whole number of 30 digits'),
    (b'["\xff"]', 'is not UTF-8 at byte 2'),
    (b'{"a": 1,}', 'is not JSON at line 1'),
    (b'', 'is not JSON'),
    (b'[' * 200_000, 'is nested too deeply|is not JSON'),
    (b'{}x', 'is not JSON'),
  )
  def test_refused(self, data, problem):
    with self.assertRaisesRegex(Malformed, problem):
      loads(data)

  def test_canonical(self):
    self.assertEqual(canonical({'b': 'ä"', 'a': [1.0, 1]}), '{"a":[1.0,1],"b":"ä\\""}'.encode())
    with self.assertRaisesRegex(Malformed, 'surrogate'):
      canonical('\ud800')
    nest = []
    for _ in range(100_000):
      nest = [nest]
    with self.assertRaisesRegex(Malformed, 'too deeply'):
      canonical(nest)


_VALUES = [1, -2.5, 'ä', None, True]


if __name__ == '__main__':
  absltest.main()
