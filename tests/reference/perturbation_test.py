import concurrent.futures

import ml_dtypes
import numpy as np
from absl.testing import absltest, parameterized

from tf2verify.reference import perturbation
from tf2verify.reference.arrays import array_digest
from tf2verify.reference.perturbation import Perturber
from tf2verify.reference.versions import VERSIONS

DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)
INFO = {
  'float16': (6.104e-05, 65504.0),
  'bfloat16': (float(ml_dtypes.finfo(ml_dtypes.bfloat16).tiny), 3.3895313892515355e38),
  'float32': (float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max)),
  'float64': (float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)),
}


def normal(shape, dtype=np.float32):
  return np.random.RandomState(0).standard_normal(shape).astype(dtype)


class MovedTest(parameterized.TestCase):
  @parameterized.parameters(*DTYPES)
  def test_every_element_moves_by_one_unit(self, dtype):
    value = normal((40, 50), dtype)
    after = perturbation.moved(value, 'a key')
    self.assertEqual((after.shape, after.dtype), (value.shape, value.dtype))
    neighbours = [np.nextafter(value, np.array(end, dtype)) for end in (-np.inf, np.inf)]
    self.assertTrue(np.all((after == neighbours[0]) | (after == neighbours[1])))

  def test_units_of_a_narrower_format(self):
    value = normal((40, 50))
    after = Perturber(3, 7, unit_bits=7).variable('kernel', value)
    steps = after.view(np.int32) - value.view(np.int32)
    self.assertEqual(set(np.abs(steps).ravel()), {2**16})
    self.assertTrue(np.all(np.sign(after) == np.sign(value)))
    narrow = value.astype(ml_dtypes.bfloat16)
    same = Perturber(3, 7, unit_bits=7).variable('kernel', narrow)
    self.assertEqual(same.tobytes(), Perturber(3).variable('kernel', narrow).tobytes())

  @parameterized.parameters(*DTYPES)
  def test_up_and_down_alike(self, dtype):
    value = normal((100, 100), dtype)
    up = np.mean(perturbation.moved(value, 'a key') > value)
    self.assertBetween(float(up), 0.48, 0.52)

  @parameterized.parameters(*DTYPES)
  def test_zeros_and_what_is_not_finite_stay(self, dtype):
    value = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype)
    for number in range(4):
      self.assertEqual(perturbation.moved(value, str(number)).tobytes(), value.tobytes())

  @parameterized.parameters(*DTYPES)
  def test_nothing_becomes_infinite_zero_or_of_the_other_sign(self, dtype):
    _, greatest = INFO[np.dtype(dtype).name]
    least = np.nextafter(np.array(0, dtype), np.array(1, dtype))
    value = np.array([greatest, -greatest, least, -least] * 50, dtype)
    after = perturbation.moved(value, 'a key')
    self.assertTrue(np.all(np.isfinite(after)))
    self.assertTrue(np.all(np.sign(after) == np.sign(value)))
    self.assertTrue(np.any(after != value))

  @parameterized.parameters(np.complex64, np.complex128)
  def test_both_components_move(self, dtype):
    value = (normal((30,)) + 1j * normal((30, 1))).astype(dtype)
    after = perturbation.moved(value, 'a key')
    self.assertTrue(np.all(after.real != value.real))
    self.assertTrue(np.all(after.imag != value.imag))
    epsilon = np.finfo(dtype).eps
    np.testing.assert_allclose(after, value, rtol=2 * epsilon)

  def test_the_key_decides(self):
    value = normal((200,))
    self.assertTrue(np.array_equal(perturbation.moved(value, 'a'), perturbation.moved(value, 'a')))
    self.assertFalse(np.array_equal(perturbation.moved(value, 'a'), perturbation.moved(value, 'b')))

  def test_the_original_stays(self):
    value = normal((10,))
    value.flags.writeable = False
    before = value.copy()
    self.assertTrue(np.all(perturbation.moved(value, 'a') != value))
    self.assertTrue(np.array_equal(value, before))

  @parameterized.parameters(
    (np.float32(2.5),), (np.ones((2, 3), np.float32).T,), (np.ones((0, 3), np.float32),)
  )
  def test_any_layout(self, value):
    after = perturbation.moved(np.asarray(value), 'a')
    self.assertEqual(after.shape, np.shape(value))
    self.assertTrue(np.all(after != value))

  def test_big_endian(self):
    value = normal((10,)).astype('>f4')
    np.testing.assert_allclose(perturbation.moved(value, 'a'), value, rtol=3e-7)

  def test_more_elements_than_a_chunk(self):
    value = np.ones(2**17 + 3, np.float32)
    self.assertTrue(np.all(perturbation.moved(value, 'a') != value))


class MoverTest(parameterized.TestCase):
  def test_coins_never_change(self):
    # What a recording's noise was measured with: a change needs a new version of "noise".
    self.assertEqual(VERSIONS['noise'], 1)
    value = np.arange(1, 1001, dtype=np.float32) / 7
    self.assertStartsWith(array_digest(Perturber(3).variable('kernel', value)), '9bfc4640092f04cd')

  def test_threads_do_not_share_coins(self):
    value = normal((100_000,))
    names = [str(n) for n in range(40)]
    alone = [Perturber(0).variable(name, value) for name in names]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
      together = list(pool.map(lambda name: Perturber(0).variable(name, value), names))
    for one, other in zip(alone, together, strict=True):
      np.testing.assert_array_equal(one, other)

  def test_runs_and_names_have_coins_of_their_own(self):
    value = normal((200,))
    first = Perturber(0).variable('kernel', value)
    self.assertTrue(np.array_equal(first, Perturber(0).variable('kernel', value)))
    self.assertFalse(np.array_equal(first, Perturber(1).variable('kernel', value)))
    self.assertFalse(np.array_equal(first, Perturber(0).variable('bias', value)))

  @parameterized.parameters(
    (np.arange(3),),
    (np.array([True]),),
    (np.array([b'text']),),
    (np.ones(3, np.float32).view('V4'),),
  )
  def test_what_has_no_fraction_stays(self, value):
    self.assertIs(Perturber(0).variable('step', value), value)
    self.assertIs(Perturber(0).input('', value), value)

  def test_float8_stays(self):
    value = np.ones(3, ml_dtypes.float8_e4m3fn)
    self.assertIs(Perturber(0).variable('kernel', value), value)

  def test_a_coarser_format_than_asked_for_stays(self):
    perturber = Perturber(0, perturbation.fraction_bits(np.dtype(np.float64)))
    self.assertIs(perturber.variable('kernel', coarse := normal((3,))), coarse)
    fine = normal((3,), np.float64)
    self.assertTrue(np.all(perturber.variable('kernel', fine) != fine))

  def test_an_input_of_integers_stays(self):
    mask = np.array([0.0, 1.0, 1.0, 255.0], np.float32)
    self.assertIs(Perturber(0).input("['mask']", mask), mask)
    image = np.array([0.0, 0.5], np.float32)
    self.assertEqual(np.sum(Perturber(0).input("['image']", image) != image), 1)

  def test_a_variable_of_ones_moves(self):
    gamma = np.ones(3, np.float32)
    self.assertTrue(np.all(Perturber(0).variable('gamma', gamma) != gamma))


if __name__ == '__main__':
  absltest.main()
