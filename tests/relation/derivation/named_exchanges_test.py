"""Tests of tf2verify.relation.derivation.named_exchanges."""

from absl.testing import absltest

from tf2verify.relation.derivation.named_exchanges import named_exchanges
from tf2verify.relation.layouts.map_entry import MapEntry

_TF1 = {'att/v': (8,), 'att/coverage/w_c': (1, 1, 1, 8), 'att/w_h': (8, 8)}
_TF2 = {'v': (8,), 'coverage_w_c': (1, 8), 'w_h': (8, 8)}


def _entries(*pairs):
  return [MapEntry((one,), (other,)) for one, other in pairs]


def _found(entries, tf2=None):
  return [
    [(one.tf1[0], one.tf2[0], one.layout) for one in changed]
    for changed in named_exchanges(entries, _TF1, tf2 or _TF2)
  ]


class NamedExchangesTest(absltest.TestCase):
  def test_two_change_their_partners(self):
    crossed = _entries(('att/w_h', 'w_h'), ('att/coverage/w_c', 'v'), ('att/v', 'coverage_w_c'))
    self.assertEqual(
      _found(crossed),
      [
        [
          ('att/w_h', 'w_h', ''),
          ('att/coverage/w_c', 'coverage_w_c', '1 1 1 a -> 1 a'),
          ('att/v', 'v', ''),
        ]
      ],
    )

  def test_names_that_agree_stay(self):
    right = _entries(('att/v', 'v'), ('att/coverage/w_c', 'coverage_w_c'))
    self.assertEqual(_found(right), [])

  def test_names_that_say_nothing_stay(self):
    shapes = {'a': (8,), 'b': (1, 8)}
    self.assertEqual(_found(_entries(('att/v', 'a'), ('att/coverage/w_c', 'b')), shapes), [])

  def test_other_sizes_stay(self):
    shapes = {**_TF2, 'v': (4, 2)}
    crossed = _entries(('att/coverage/w_c', 'v'), ('att/v', 'coverage_w_c'))
    self.assertEqual(_found(crossed, shapes), [])


if __name__ == '__main__':
  absltest.main()
