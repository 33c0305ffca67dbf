"""One class per kind of user mistake.

Every message follows one grammar: what was attempted, the value that was wrong,
what is allowed, the likely slip, the fix.
"""


class Tf2VerifyError(Exception):
  """Base of every error that tf2verify raises on purpose."""


class EnvironmentProblem(Tf2VerifyError):
  """The installed packages, or the order of imports, cannot run TF1-style code."""


class CaseDefinitionError(Tf2VerifyError):
  """The `EquivalenceCase` subclass itself is not a valid declaration."""


class VariableMapError(CaseDefinitionError):
  """A variable map is none, or does not fit the variables; of a file the message has the line."""


class InputsError(Tf2VerifyError):
  """`make_inputs` returned something that cannot be fed to both sides."""


class BuilderError(Tf2VerifyError):
  """`build_tf1_graph` returned, or did, something that the tf1 side cannot use."""


class LayerError(Tf2VerifyError):
  """`make_tf2_layer` returned, or did, something that the tf2 side cannot use."""


class UsageError(Tf2VerifyError):
  """The command line names something that does not exist or cannot be read."""


class CheckpointError(Tf2VerifyError):
  """A checkpoint is absent, truncated, of a different kind, or of a different model."""


class RecordingError(Tf2VerifyError):
  """A recording is damaged, incomplete, of a different model, or cannot be used with the case."""


class ChangeRefused(Tf2VerifyError):
  """The reference cannot be run with one thing changed; the message says why."""


class RuleWarning(RuntimeWarning):
  """A rule that looks for a cause raised: the verdict is valid, but a cause may be missing."""


class NotApplicable(Tf2VerifyError):
  """A stage has nothing to look at; the message is the reason that the report shows.

  Attributes:
    blind_spot: what is not verified for that reason, where the case seems to expect that it is; ''
      where nothing is missing.
  """

  def __init__(self, reason: str, blind_spot: str = '') -> None:
    super().__init__(reason)
    self.blind_spot = blind_spot


class UserCodeError(Tf2VerifyError):
  """A hook of the case raised.

  Attributes:
    side: 'tf1', 'tf2' or 'case': whose code raised.
    hook: the method of the case that tf2verify had called.
    summary: the exception on one line, with the fix where the cause is known.
    traceback_text: the user's own traceback, without tf2verify's frames.
  """

  def __init__(self, side: str, hook: str, summary: str, traceback_text: str) -> None:
    super().__init__(f'{hook} raised {summary}')
    self.side = side
    self.hook = hook
    self.summary = summary
    self.traceback_text = traceback_text
