"""Fails on purpose, at `checkpoint`: two loaders that leave variables as they were."""

import tf2verify
from examples.checkpoint_conversion import equivalence_test, port


class RestoredByObjectCase(equivalence_test.BarsCase):
  def load_tf1_checkpoint(self, layer, path):
    port.restore_by_object(layer, path)


class MissedNameCase(equivalence_test.BarsCase):
  def load_tf1_checkpoint(self, layer, path):
    port.load_what_is_found(layer, path)


if __name__ == '__main__':
  tf2verify.main()
