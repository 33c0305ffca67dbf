"""How many tensors of the size of the outputs each loss computes."""

from tf2verify.records.loss_values import LossExample
from tf2verify.records.table import Table
from tf2verify.sides.tf1.reference import ReferenceLoss
from tf2verify.sides.tf2.loss_function import Tf2LossFunction
from tf2verify.stages.losses.results import LossReading

# The two spellings of a right loss differ by a few.
_MANY_MORE = 2


def kept_tensors(
  tf1: ReferenceLoss,
  tf2: Tf2LossFunction,
  model: LossExample,
  reading: LossReading,
) -> tuple[Table, str]:
  """Counts the tensors of the size of the largest output that the losses read.

  Of value and gradient together, each side by itself: an upper bound of what is alive at
  once, since memory may be used again.

  Returns:
    The table, and a note where the port computes many more; '' elsewhere.
  """
  largest = max(reading.read, key=lambda path: model.outputs[path].size)
  same = {relation.derived for relation in reading.related if relation.source == largest} | {
    largest
  }
  sizes = model.outputs[largest].nbytes

  counts = {
    'tf1': max((tf1.program(model).kept.get(path, 0) for path in same), default=0),
    'tf2, eager': max(tf2.computed_eagerly(model, frozenset(same)).values(), default=0),
    'tf2, tf.function': max((tf2.program(model).kept.get(path, 0) for path in same), default=0),
  }
  rows = tuple((side, str(count), f'{count * sizes:,}') for side, count in counts.items())
  shape = tuple(int(size) for size in model.outputs[largest].shape)
  title = f'tensors of the size of outputs{largest} {shape} in the loss and its gradient'
  table = Table(title, ('side', 'tensors', 'bytes'), rows)
  more = max(counts.values())
  if more <= _MANY_MORE * max(counts['tf1'], 1):
    return table, ''
  return table, (
    f'the loss of tf2 computes {more} tensors of the size of outputs{largest}, that of tf1 '
    f'{counts["tf1"]}: {(more - counts["tf1"]) * sizes:,} bytes more at the shapes of this case'
  )
