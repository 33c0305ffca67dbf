"""Inputs and attributes."""

import numpy as np

import tf2verify
from tests.bad_cases.mistake import error
from tests.small_case import SmallCase

# isort: split
import tensorflow as tf

v1 = tf.compat.v1


class InputsAreTensors(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "make_inputs()['image'] is of type EagerTensor; ",
    'return `x.numpy()` instead',
  )

  def make_inputs(self):
    return {'image': tf.ones((4, 3))}


class InputsAreRagged(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs() is of type RaggedTensor; ',
    'return its parts',
    'tf.RaggedTensor.from_row_splits(values, splits)',
  )

  def make_inputs(self):
    return tf.ragged.constant([[1, 2, 3], [4]])


class InputsAreSparse(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "make_inputs()['rows'] is of type SparseTensor; ",
    "{'indices': x.indices.numpy(), 'values': x.values.numpy()}",
  )

  def make_inputs(self):
    return {'rows': tf.sparse.from_dense(tf.eye(3))}


class InputsAreLists(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs()[0][0] is of type float; ',
    'a list means several inputs',
    'np.asarray(the list)',
  )

  def make_inputs(self):
    return [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]


class InputsAreDates(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs() has dtype datetime64[D], which TensorFlow does not have; cast it',
    '(make_inputs: ',
    'bad_cases/declaration.py:',
  )

  def make_inputs(self):
    return np.array(['2020-01-01'], 'datetime64[D]')


class InputsHaveKeysOfTwoTypes(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "make_inputs() has keys that cannot be sorted: 0 (int), 'b' (str); ",
    '(make_inputs: ',
    'bad_cases/declaration.py:',
  )

  def make_inputs(self):
    return {0: np.ones((4, 3), np.float32), 'b': np.ones((4, 3), np.float32)}


class LabelsAreMasked(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_labels() is a masked array (1 of 3 elements masked)',
    '(make_labels: ',
    'bad_cases/declaration.py:',
  )

  def make_labels(self):
    return np.ma.masked_greater(np.arange(3.0), 1)


class InputsHaveNan(SmallCase):
  mistake = error(
    'no_new_variables', 'case', 'make_inputs() contains NaN (2 of 6 elements)', 'replace them'
  )

  def make_inputs(self):
    return np.array([[0.0, np.nan, 2.0], [3.0, np.nan, 5.0]], np.float32)


class InputsAreObjects(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs() has dtype object, with elements that are not all strings; ',
    'pad the rows',
  )

  def make_inputs(self):
    return np.array([[1.0], [1.0, 2.0]], dtype=object)


class InputsAreNone(SmallCase):
  mistake = error(
    'no_new_variables', 'case', 'make_inputs() is of type NoneType; ', 'usually a missing `return`'
  )

  def make_inputs(self):
    np.ones((4, 3))


class InputsAreEmptyNest(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'make_inputs() returned {}, which contains no array; return the array',
  )

  def make_inputs(self):
    return {}


class InputsHaveNoElement(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'arrays without any element (shape (0, 3))',
    'give a batch of at least one',
  )

  def make_inputs(self):
    return np.ones((0, 3), np.float32)


class InputsOfWrongShape(SmallCase):
  mistake = error(
    'no_new_variables',
    'tf2',
    'call_tf2_layer raised InvalidArgumentError: ',
    'Matrix size-incompatible: In[0]: [4,5], In[1]: [3,2]',
  )

  def make_inputs(self):
    return np.ones((4, 5), np.float32)


class StageUnknown(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "'gradient' is not a stage (did you mean 'gradients'?); the stages are no_new_variables, ",
  )
  stages = ('no_new_variables', 'gradient')


class StageWithoutReason(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'stages leaves out zero_randomness, ',
    ' without a reason',
    "all_stages_except(zero_randomness='why')",
  )
  stages = ('no_new_variables', 'variable_inventory')


class StagesAreText(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "stages is 'gradients'; leave it out for the whole ladder, or ",
    "all_stages_except(gradients='why')",
  )
  stages = 'gradients'


class ToleranceIsNumber(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'tolerance = 0.001: it must be a Tolerance',
    'maybe you meant Tolerance(rtol=0.001, atol=0.001)',
  )

  tolerance = 1e-3  # type: ignore[assignment]


class GradientToleranceOfUnknownDtype(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    "gradient_tolerance has an entry for 'float31', which is not a dtype; allowed are float32",
  )

  gradient_tolerance = {'float31': tf2verify.Tolerance(1e-3, 1e-3)}


class TrainingModesEmpty(SmallCase):
  mistake = error(
    'no_new_variables',
    'case',
    'training_modes is (); it must be a tuple of False (inference) and True (training)',
  )

  training_modes = ()


class TrainingModesAreTexts(SmallCase):
  mistake = error(
    'no_new_variables', 'case', "training_modes is ('train', 'eval'); it must be a tuple"
  )

  training_modes = ('train', 'eval')  # type: ignore[assignment]


class TrainingModesIsBool(SmallCase):
  mistake = error('no_new_variables', 'case', 'training_modes is True; it must be a tuple')

  training_modes = True  # type: ignore[assignment]


class VariableNamesIsList(SmallCase):
  mistake = error(
    'variable_inventory',
    'case',
    'variable_names is a list; it must be a mapping from tf1 name to tf2 name, a callable',
  )

  variable_names = ['dense/kernel']  # type: ignore[assignment]


class VariableNamesUnknown(SmallCase):
  mistake = error(
    'variable_inventory',
    'case',
    "keys that name no tf1 variable: 'dense/kernal'. Maybe you meant 'dense/kernel'",
  )

  variable_names = {'dense/kernal': 'kernel'}


class VariableNamesRaises(SmallCase):
  mistake = error(
    'variable_inventory',
    'case',
    "variable_names('dense/kernel') raised KeyError: 'dense/kernel'. It is called with every",
  )

  def variable_names(self, name):
    return {}[name]


class FillOfWrongShape(SmallCase):
  mistake = error(
    'zero_randomness',
    'case',
    'fill_values gave dense/kernel an array of shape (7,); the variable has shape (3, 2)',
  )

  def fill_values(self, name, shape, dtype):
    return np.zeros((7,), dtype)


class FillOfWrongType(SmallCase):
  mistake = error(
    'zero_randomness',
    'case',
    'fill_values returned a list for dense/kernel; return a numpy array of shape (3, 2), or None',
    '(fill_values: ',
    'bad_cases/declaration.py:',
  )

  def fill_values(self, name, shape, dtype):
    return [0.5, 0.25]


class FillOfWrongDtype(SmallCase):
  mistake = error(
    'zero_randomness',
    'case',
    'fill_values gave dense/kernel an array of dtype <U1; the variable has dtype float32',
  )

  def fill_values(self, name, shape, dtype):
    return np.full(shape, 'x')
