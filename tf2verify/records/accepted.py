"""Causes that a case accepts, and what they change of the reference."""

import dataclasses
import enum


class Changed(enum.Enum):
  """Which one thing of TF1's own graph is changed."""

  EPSILON = 'epsilon of normalizations'
  SLOPE = 'slope of leaky relus'
  VARIANCE = 'moving variance'
  WEIGHT_DECAY = 'factor of regularization losses'
  DENOMINATOR = 'what the loss is divided by'
  OPTIMIZER_EPSILON = 'epsilon of the optimizer'
  LEARNING_RATE = 'learning rate'
  FORGET_BIAS = 'forget bias of LSTM cells'


# Of a change of variances: places that are no moving variance are left as they are.
WHERE_ONE_IS = 'where one is'


@dataclasses.dataclass(frozen=True)
class Change:
  """One thing of TF1's own graph, set to what the port has: the prediction of a cause.

  Attributes:
    what: which thing.
    tf1: what TF1 has: a number; 0 where the change is not a number.
    tf2: what it is set to, the port's; for a factor, that factor.
    places: names of operations, variables or losses that it is about; empty for all that have
      TF1's value.
    words: what else the change has to know: names of denominators, paths of labels, or
      `WHERE_ONE_IS`.
  """

  what: Changed
  tf1: float = 0.0
  tf2: float = 0.0
  places: tuple[str, ...] = ()
  words: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class AcceptedCause:
  """A cause that a case accepts, with which a stage was judged.

  Attributes:
    name: of the rule.
    reason: why the case accepts it.
    changed: what of TF1's graph was changed for the prediction, and where.
    differences: how many findings of the stage it explains whole; 0 where the stage was compared
      with the prediction from the start.
    greatest: the greatest |tf2 - tf1| of these; 0 without any.
  """

  name: str
  reason: str
  changed: str
  differences: int = 0
  greatest: float = 0.0

  def to_text(self) -> str:
    """Returns it on one line."""
    said = f'accepted cause {self.name} ({self.reason}): '
    if not self.differences:
      return f'{said}compared with TF1 run with {self.changed}'
    many = f'{self.differences:,} difference{"" if self.differences == 1 else "s"}'
    size = f', up to {self.greatest:.3g}' if self.greatest else ''
    is_said = 'is' if self.differences == 1 else 'are'
    return f'{said}{many}{size}, {is_said} explained by TF1 run with {self.changed}'
