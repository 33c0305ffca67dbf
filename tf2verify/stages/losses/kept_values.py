"""The reference's loss on perturbed outputs, of which every edit of the port is judged anew."""

from tf2verify.records.loss_values import LossExample, LossValue
from tf2verify.reference.perturbation import Perturber
from tf2verify.sides.tf1.reference import ReferenceLoss

# Values and gradients of one run are kept up to this size: there are dozens of runs.
_MOST_BYTES = 2**18


class KeptValues:
  """Runs a loss of the reference; of small outputs, once for each example and perturbation."""

  def __init__(self, loss: ReferenceLoss) -> None:
    """Takes the loss."""
    self._loss = loss
    self._known: dict[tuple[str, Perturber], LossValue] = {}

  def of(self, example: LossExample, perturber: Perturber | None) -> LossValue:
    """Returns the loss and its gradients, of moved outputs with a perturber."""
    is_small = sum(array.nbytes for array in example.outputs.values()) <= _MOST_BYTES
    if perturber is None or not is_small:
      return self._loss.value(example, perturber)
    key = example.name, perturber
    if key not in self._known:
      self._known[key] = self._loss.value(example, perturber)
    return self._known[key]
