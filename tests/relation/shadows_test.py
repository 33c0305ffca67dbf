import numpy as np
from absl.testing import absltest

from tf2verify.records.training import Slot
from tf2verify.relation.shadows import Values, find_shadows

BEFORE, AFTER = np.float32([1.0, -2.0, 4.0]), np.float32([1.5, -1.0, 3.0])
AVERAGE = np.float32(0.9) * BEFORE + np.float32(0.1) * AFTER


def owners(value, start, word='second', variable='w', size=3):
  """Returns what state of a port is found to be the average of, made with a start in the step."""
  slot = Slot(word, variable, 'kept', value[:size])
  made = Slot(word, variable, 'kept', np.float32(start)[:size])
  values = [Values('w', BEFORE[:size], AFTER[:size])]
  wanted = {'w': Slot('shadow', 'w', 'w/ema', AVERAGE[:size])}
  return dict(find_shadows(wanted, [slot], [made], values).owners)


class FindShadowsTest(absltest.TestCase):
  def test_from_where_the_variable_was(self):
    self.assertEqual(owners(AVERAGE, BEFORE), {0: 'w'})
    self.assertEqual(owners(AVERAGE, BEFORE, variable=''), {0: 'w'})

  def test_set_since_it_was_made(self):
    """As the weights of a second model, which have initial values of their own."""
    for start in ([5.0, 6.0, -7.0], [0.0, 0.0, 0.0]):
      self.assertEqual(owners(AVERAGE, start), {0: 'w'}, start)

  def test_of_one_element(self):
    self.assertEqual(owners(AVERAGE, BEFORE, size=1), {0: 'w'})
    self.assertEqual(owners(AVERAGE, [5.0], size=1), {})

  def test_what_is_elsewhere(self):
    for start in (BEFORE, [5.0, 6.0, -7.0], [0.0, 0.0, 0.0]):
      self.assertEqual(owners(AVERAGE + np.float32([0.1, 0.0, 0.0]), start), {}, start)

  def test_from_zero_under_a_word_for_averages(self):
    value = np.float32(0.1) * AFTER
    self.assertEqual(owners(value, [0.0, 0.0, 0.0], 'ema'), {0: 'w'})
    self.assertEqual(owners(value, [0.0, 0.0, 0.0]), {})


if __name__ == '__main__':
  absltest.main()
