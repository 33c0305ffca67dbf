"""How the two sides start variables; of a single one see also `records.initial_value`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class OtherDistribution:
  """Variables that one side draws from one distribution, the other from another."""

  tf1: str  # how tf1 draws them, as text
  tf2: str  # how the port does
  names: tuple[str, ...]  # tf1 names of the variables
  # Others that differ alike, and are drawn with other scales.
  further: 'tuple[OtherDistribution, ...]' = ()


@dataclasses.dataclass(frozen=True)
class SharedNumbers:
  """A variable that starts with the numbers of another one on one side only."""

  name: str  # its tf1 name
  twin: str  # tf1 name of the other one
  in_port: bool  # whether it does in the port
