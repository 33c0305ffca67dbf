"""Names that speak against a map that pairs variables by what they do."""

from collections.abc import Sequence

from absl.testing import absltest, parameterized

from tf2verify.relation.names.exchanged_names import exchanged

_SHAPE = (3, 3)


def _map(pairs: Sequence[tuple[str, str]]) -> dict[str, str]:
  """Returns a map of layers with a kernel and a bias each."""
  return {f'{one}/{role}': f'{other}/{role}' for one, other in pairs for role in ('kernel', 'bias')}


def _told(partner: dict[str, str], shapes: dict[str, tuple[int, ...]] | None = None):
  known = dict.fromkeys(partner.values(), _SHAPE) | (shapes or {})
  return {name: other for group in exchanged(partner, known) for name, other in group.items()}


class ScopesTest(parameterized.TestCase):
  """Two towers, each of which is used for what the other one is in tf1."""

  def test_exchanged_towers(self):
    partner = _map(
      [
        ('m/query/fc0', 'two/candidate_tower/d0'),
        ('m/query/out', 'two/candidate_tower/last'),
        ('m/candidate/fc0', 'two/query_tower/d0'),
        ('m/candidate/out', 'two/query_tower/last'),
      ]
    )
    wanted = _map(
      [
        ('m/query/fc0', 'two/query_tower/d0'),
        ('m/query/out', 'two/query_tower/last'),
        ('m/candidate/fc0', 'two/candidate_tower/d0'),
        ('m/candidate/out', 'two/candidate_tower/last'),
      ]
    )
    self.assertEqual(_told(partner), wanted)

  @parameterized.parameters(
    ('query', 'candidate', 'query_tower', 'candidate_tower'),  # as the names say
    ('query', 'candidate', 'left', 'right'),  # names that say nothing
    ('query', 'query_item', 'query_item_tower', 'query_tower'),  # names that say both
  )
  def test_nothing_to_tell(self, one, other, its, others):
    partner = _map([(f'm/{one}/fc', f'two/{its}/d'), (f'm/{other}/fc', f'two/{others}/d')])
    self.assertEqual(_told(partner), {})

  @parameterized.parameters(
    ('src', 'tgt', 'target', 'source'), ('enc', 'dec', 'decoder', 'encoder')
  )
  def test_abbreviations(self, one, other, its, others):
    partner = _map([(f'm/{one}/fc', f'two/{its}/d'), (f'm/{other}/fc', f'two/{others}/d')])
    wanted = _map([(f'm/{one}/fc', f'two/{others}/d'), (f'm/{other}/fc', f'two/{its}/d')])
    self.assertEqual(_told(partner), wanted)

  @parameterized.parameters(('query', 'candidate'), ('left', 'right'))
  def test_one_layer_of_each_tower(self, its, others):
    """Told by the words of the scopes, and otherwise by the other layers."""
    pairs = [(f'm/query/fc{n}', f'two/{its}/d{n}') for n in range(3)]
    pairs += [(f'm/candidate/fc{n}', f'two/{others}/d{n}') for n in range(3)]
    turned = [('m/query/out', f'two/{others}/last'), ('m/candidate/out', f'two/{its}/last')]
    wanted = [('m/query/out', f'two/{its}/last'), ('m/candidate/out', f'two/{others}/last')]
    self.assertEqual(_told(_map([*pairs, *turned])), _map(wanted))
    self.assertEqual(_told(_map([*pairs, *wanted])), {})

  def test_towers_of_different_shapes(self):
    partner = _map([('m/query/fc', 'two/candidate/d'), ('m/candidate/fc', 'two/query/d')])
    self.assertNotEqual(_told(partner), {})
    self.assertEqual(_told(partner, {'two/query/d/kernel': (3, 4)}), {})


class NumbersTest(absltest.TestCase):
  """Layers that their author has numbered."""

  def test_a_turned_family_beside_one_that_is_not(self):
    partner = _map(
      [
        ('m/fc0', 'p/d0'),
        ('m/bn0', 'p/n1'),
        ('m/fc1', 'p/d1'),
        ('m/bn1', 'p/n0'),
      ]
    )
    self.assertEqual(_told(partner), _map([('m/bn0', 'p/n0'), ('m/bn1', 'p/n1')]))

  def test_a_port_that_counts_from_the_other_end(self):
    self.assertEqual(_told(_map([('m/fc0', 'p/d1'), ('m/fc1', 'p/d0')])), {})

  def test_numbers_that_keras_gives(self):
    partner = _map(
      [
        ('m/fc0', 'p/d0'),
        ('m/bn0', 'p/batch_normalization_1'),
        ('m/fc1', 'p/d1'),
        ('m/bn1', 'p/batch_normalization'),
      ]
    )
    self.assertEqual(_told(partner), {})


if __name__ == '__main__':
  absltest.main()
