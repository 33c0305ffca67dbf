"""How the two sides start variables; of a single one see also `records.initial_value`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class OtherDistribution:
  """Variables that one side draws from one distribution, the other from another.

  Attributes:
    tf1: how tf1 draws them, as text.
    tf2: how the port does.
    names: tf1 names of the variables.
  """

  tf1: str
  tf2: str
  names: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class SharedNumbers:
  """A variable that starts with the numbers of another one on one side only.

  Attributes:
    name: its tf1 name.
    twin: tf1 name of the other one.
    in_port: whether it does in the port.
  """

  name: str
  twin: str
  in_port: bool
