"""What is reported of an error that ended a stage."""

import traceback

from tf2verify.errors import BuilderError, LayerError, RecordingError, Tf2VerifyError, UserCodeError
from tf2verify.records.verdict import ErrorRecord
from tf2verify.sides import side


def error_record(error: Tf2VerifyError) -> ErrorRecord:
  """Returns the record of an error that tf2verify raises on purpose."""
  if isinstance(error, UserCodeError):
    return ErrorRecord(error.side, str(error), error.traceback_text)
  if isinstance(error, (BuilderError, RecordingError)):
    return ErrorRecord(side.TF1, str(error))
  if isinstance(error, LayerError):
    return ErrorRecord(side.TF2, str(error))
  return ErrorRecord('case', str(error))


def defect_record(error: Exception) -> ErrorRecord:
  """Returns the record of any other error: a defect, by which no other case may be lost."""
  said = ' '.join(''.join(traceback.format_exception_only(error)).split())
  return ErrorRecord(
    'case',
    f'tf2verify itself raised {said:.300}; this is a defect of tf2verify, and says nothing about '
    'the port: please report it with the traceback',
    ''.join(traceback.format_exception(error)),
  )
