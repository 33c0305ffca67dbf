"""What is said of a concatenation in another order."""

import dataclasses

import numpy as np
from absl.testing import absltest

from tests.diagnosis.rules_test import evidence, source
from tf2verify.diagnosis.rules.forward.concat_order import concat_order

_TF1 = np.random.RandomState(0).standard_normal((3, 12)).astype(np.float32)
_ORDER = [*range(6), *range(9, 12), *range(6, 9)]


class ConcatOrderTest(absltest.TestCase):
  def _cause(self, **changes):
    found = source(('ConcatV2',), ('ConcatV2',), tf1=_TF1, tf2=_TF1[:, _ORDER])
    changed = dataclasses.replace(found.source, **changes)
    return concat_order(evidence(dataclasses.replace(found, source=changed)))

  def test_slices_are_shown_in_runs(self):
    self.assertIn('number [0 to 5, 9 to 11, 6 to 8] of tf2', self._cause().evidence)

  def test_feature_columns_are_named_where_there_are_some(self):
    for name, is_said in (('decoder/concat', False), ('input_layer/concat', True)):
      with self.subTest(name=name):
        self.assertEqual('feature columns' in self._cause(tf1_op=name).text, is_said)


if __name__ == '__main__':
  absltest.main()
