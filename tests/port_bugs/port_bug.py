"""What the suite of porting mistakes consists of."""

import dataclasses

import tf2verify


@dataclasses.dataclass(frozen=True)
class PortBug:
  """One class of porting mistake, as a pair of ports of one TF1 model.

  Attributes:
    identifier: names the class: `B21`.
    title: what the mistake is about, in a few words.
    tf1: what TF1 does.
    mistake: what the wrong port does.
    stage: the stage that must be the first to see it.
    wrong: the case with the wrong port.
    right: the same model with a port that must pass the ladder (see `suite.last_of_right`).
    words: what the text of the verdict of `wrong` must contain.
    status: of that verdict; PASSED where the words are in the notes of the stage.
    causes: names of the rules that fire on it; empty where the stage itself names the
      cause.
  """

  identifier: str
  title: str
  tf1: str
  mistake: str
  stage: str
  wrong: type[tf2verify.EquivalenceCase]
  right: type[tf2verify.EquivalenceCase]
  words: tuple[str, ...]
  status: tf2verify.Status = tf2verify.Status.FAILED
  causes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Control:
  """A pair that looks like a mistake and must not be blamed.

  Attributes:
    title: what looks wrong about it.
    right: the case.
  """

  title: str
  right: type[tf2verify.EquivalenceCase]
