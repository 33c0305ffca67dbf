"""What became of a cause that was tried out on the port's graph."""

import dataclasses
import enum


class Outcome(enum.Enum):
  """What an experiment has shown."""

  PROVEN = 'proven'  # with all edits the stage passes, and without this one it does not
  PARTLY = 'partly'  # with it the sides are closer to each other, but the stage does not pass


class Edit(enum.Enum):
  """What of the port's graph was edited."""

  SETTING = 'setting'  # a constant, or an attribute: tf1's in place of the port's
  OPERATIONS = 'operations'  # tf1's operations in place of the port's, on the port's own values
  VALUE = 'value'  # what tf1 has there, in place of what the port computes


@dataclasses.dataclass(frozen=True)
class Experiment:
  """One edit of the port's graph, with which the stage's run was made again.

  Attributes:
    edit: what was edited.
    text: what is different in the port, in the model's own terms; '' if only the place is known.
    outcome: what the run has shown.
    number: which of the mistakes it is, from 1, in the order of execution.
    mistakes: how many were found.
    apart: the greatest difference of a compared tensor with all edits, as a share of the
      greatest magnitude of tf1's.
    tensors: how many tensors were compared.
    left: how many of them still differ.
    by_value: how many of the mistakes were fixed by giving the port what tf1 has there.
  """

  edit: Edit
  text: str
  outcome: Outcome
  number: int
  mistakes: int
  apart: float
  tensors: int
  left: int = 0
  by_value: int = 0
