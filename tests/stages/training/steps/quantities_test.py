import numpy as np
from absl.testing import absltest

from tf2verify.numerics.tolerance import TRAINING_TOLERANCES
from tf2verify.records.observation import TensorRecord
from tf2verify.records.training import OptimizerRecord, Slot, TrainingRun, TrainingStep
from tf2verify.stages.training.steps import quantities
from tf2verify.stages.training.steps.quantities import Steps, greatest, of_reference, tolerance_for

START = np.array([1.0, 1.5], np.float32)


def step(number, applied=None, slots=(), **changed):
  gradient = TensorRecord('w', np.array([2.0, -1.0], np.float32))
  return TrainingStep(
    **{
      'number': number,
      'loss': np.asarray(3.0, np.float32),
      'learning_rate': 0.1,
      'global_step': number,
      'gradients': (gradient,),
      'applied_gradients': (gradient if applied is None else applied,),
      'variables': (
        TensorRecord('w', START - np.float32(0.25 * number)),
        TensorRecord('mean', START),
        TensorRecord('counter', np.asarray(number, np.int64)),
      ),
      'slots': tuple(slots),
      **changed,
    }
  )


def run(*steps, side='tf1', settings=()):
  before = (TensorRecord('w', START), TensorRecord('mean', START))
  return TrainingRun(side, 'by hand', (OptimizerRecord('Optimizer', settings),), before, (), steps)


def laid_side_by_side(tf1, tf2):
  names = [(name, name) for name in ('w', 'mean', 'counter')]
  return Steps(tf1, tf2, names, frozenset({'w'}))


class PairsTest(absltest.TestCase):
  def pairs(self, tf1, tf2, number=1):
    return list(laid_side_by_side(tf1, tf2).pairs(number))

  def test_cause_before_effect(self):
    slots = [Slot('shadow', 'w', 'w/Average', START), Slot('momentum', 'w', 'w/Momentum', START)]
    clipped = TensorRecord('w', START)
    one = run(step(1, clipped, slots))
    found = [pair.quantity for pair in self.pairs(one, one)]
    order = [quantities.CAUSAL_ORDER.index(quantity) for quantity in found]
    self.assertEqual(order, sorted(order))
    self.assertEqual(set(found), set(quantities.CAUSAL_ORDER))

  def test_a_variable_is_compared_by_its_change(self):
    one = run(step(1), step(2))
    (update,) = [p for p in self.pairs(one, one, 2) if p.quantity == quantities.UPDATE]
    np.testing.assert_array_equal(update.tf1, np.array([-0.5, -0.5], np.float32))
    # Two units in the last place of a variable between 1/2 and 1, in each of two steps.
    self.assertEqual(update.extra_atol, 2 * 2 * 2.0**-23 / 1)

  def test_gradients_that_nothing_has_changed_are_compared_once(self):
    one = run(step(1))
    self.assertNotIn(quantities.APPLIED, {pair.quantity for pair in self.pairs(one, one)})
    other = run(step(1, applied=TensorRecord('w', START)))
    self.assertIn(quantities.APPLIED, {pair.quantity for pair in self.pairs(one, other)})

  def test_what_a_side_does_not_tell_is_no_pair(self):
    silent = step(1, loss=None, learning_rate=None, global_step=None, gradients=())
    found = {pair.quantity for pair in self.pairs(run(step(1)), run(silent))}
    self.assertEqual(found, {quantities.APPLIED, quantities.UPDATE, quantities.STATE})

  def test_a_shadow_that_one_side_lacks(self):
    shadow = Slot('shadow', 'w', 'w/Average', START)
    pairs = self.pairs(run(step(1, slots=[shadow])), run(step(1)))
    (found,) = [pair for pair in pairs if pair.quantity == quantities.SHADOW]
    self.assertIsNone(found.tf2)

  def test_a_reference_that_does_not_count(self):
    still = run(step(1, global_step=0))
    found = {pair.quantity for pair in self.pairs(still, run(step(1)))}
    self.assertNotIn(quantities.GLOBAL_STEP, found)

  def test_rounding_of_a_decay_adds_up(self):
    one = run(step(1), step(2), settings=(('beta2', 0.999),))
    share = 2.0**-24 / (1 - 0.999)
    by_step = [{pair.quantity: pair for pair in self.pairs(one, one, number)} for number in (1, 2)]
    self.assertEqual(by_step[0][quantities.GRADIENT].extra_rtol, 0.0)
    self.assertAlmostEqual(by_step[0][quantities.UPDATE].extra_rtol, share)
    self.assertAlmostEqual(by_step[1][quantities.GRADIENT].extra_rtol, share)
    self.assertAlmostEqual(by_step[1][quantities.UPDATE].extra_rtol, 2 * share)


class ToleranceTest(absltest.TestCase):
  def test_a_share_of_the_greatest_element(self):
    value = np.array([1e-6, -4e-4], np.float32)
    pair = quantities.QuantityPair(quantities.GRADIENT, 'w', 'w', value, value, 1e-9, 1e-5)
    allowed = tolerance_for(pair, TRAINING_TOLERANCES).for_dtype(value.dtype)
    self.assertAlmostEqual(allowed.atol, 1e-5 * 4e-4 + 1e-9, places=15)
    self.assertAlmostEqual(allowed.rtol, 1.1e-5)

  def test_greatest(self):
    self.assertEqual(greatest(np.array([1.0, -3.0])), 3.0)
    self.assertEqual(greatest(np.array([1.0, np.nan, -np.inf])), 1.0)
    self.assertEqual(greatest(np.array([3.0 + 4.0j])), 5.0)
    self.assertEqual(greatest(np.array([7])), 0.0)
    self.assertEqual(greatest(np.array([], np.float32)), 0.0)


class OfReferenceTest(absltest.TestCase):
  def test_bears_the_same_names_as_the_pairs(self):
    slots = [
      Slot('shadow', 'w', 'w/Average', START),
      Slot('momentum', 'w', 'w/Momentum', START),
      Slot('beta1 power', '', 'beta1_power', START),
    ]
    one = run(step(1, TensorRecord('w', START), slots))
    values = of_reference(one, 1)
    for pair in laid_side_by_side(one, one).pairs(1):
      if pair.quantity not in (quantities.LEARNING_RATE, quantities.GLOBAL_STEP):
        np.testing.assert_array_equal(values[pair.key], pair.tf1)


if __name__ == '__main__':
  absltest.main()
