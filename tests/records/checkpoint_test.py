from absl.testing import absltest

from tf2verify.records.checkpoint import AccountedKey, CheckpointKey, KeyAccount, KeyKind


def accounted(name, kind, read):
  return AccountedKey(CheckpointKey(name, (2, 3), 'float32'), kind, '', read)


class KeyAccountTest(absltest.TestCase):
  def test_counts_in_the_order_of_the_kinds(self):
    keys = (
      accounted('other', KeyKind.UNKNOWN, False),
      accounted('v', KeyKind.MODEL, False),
      accounted('w', KeyKind.MODEL, True),
    )
    account = KeyAccount(keys, (), (), ())
    self.assertEqual(account.counts(), (('model variable', 2, 1), ('unknown', 1, 0)))
    self.assertEqual(account.unread(KeyKind.MODEL), (keys[1],))
    self.assertEqual(account.unread(KeyKind.SLOT), ())

  def test_text(self):
    self.assertEqual(str(CheckpointKey('w', (2, 3), 'float32')), '(2, 3) float32')


if __name__ == '__main__':
  absltest.main()
