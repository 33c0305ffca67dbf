"""Variables that kept their values although something was restored."""

from tf2verify.diagnosis.evidence.checkpoint import UnreadVariable, UnrestoredVariable
from tf2verify.records.diagnosis import Cause

_SHOWN = 3


def unbuilt_object(evidence: UnreadVariable | UnrestoredVariable) -> Cause | None:
  """An object without variables was restored."""
  is_looked_for = evidence.reached if isinstance(evidence, UnreadVariable) else bool(evidence.entry)
  if is_looked_for or not evidence.waits:
    return None
  return Cause(
    'the object that was restored has no variables: it was not built, so the restore waits for '
    f'its first call; restore the {evidence.layer} that is given, or call the object once before '
    'its variables are read'
  )


def name_without_key(evidence: UnreadVariable) -> Cause | None:
  """The names of variables are looked up in a name-based file, and this one is not there."""
  if not evidence.by_name or evidence.is_key:
    return None
  return Cause(
    'tf.train.Checkpoint.restore looks a name-based file up by the names of the variables and '
    f'passes over what it does not find; {evidence.variable} is no key of the checkpoint (there it '
    f'is {evidence.key}); read tf.train.load_checkpoint(path).get_tensor(key), or leave it to '
    'tf2verify, which goes by variable_names'
  )


def object_not_reached(evidence: UnreadVariable) -> Cause | None:
  """Another object was restored."""
  if not evidence.by_name or evidence.reached:
    return None
  return Cause(
    f'what was given to tf.train.Checkpoint does not lead to {evidence.variable}; '
    f'unread: {evidence.unread}; assert_consumed() of a name-based file passes all the same'
  )


def key_left_unread(evidence: UnreadVariable) -> Cause | None:
  """Without any of these, the loader has passed over the key."""
  return Cause(
    f'load_tf1_checkpoint leaves keys unread: {evidence.unread}; nothing tells '
    'that of a name-based file, nor does assert_consumed(): go through all of layer.variables'
  )


def untracked_variable(evidence: UnrestoredVariable) -> Cause | None:
  """No attribute leads to it."""
  if evidence.tracked:
    return None
  return Cause(
    f'no attribute of {evidence.layer} leads to {evidence.variable}, so tf.train.Checkpoint does '
    'not save it: keep variables and layers in attributes (not in a closure or a wrapped object)'
  )


def no_restore(evidence: UnrestoredVariable) -> Cause | None:
  """The hook restores nothing."""
  if evidence.restores:
    return None
  return Cause('load_tf2_checkpoint calls no tf.train.Checkpoint and leaves the variable as it was')


def another_object(evidence: UnrestoredVariable) -> Cause | None:
  """What was restored is not the layer."""
  if evidence.entry:
    return None
  return Cause('the object that was restored does not lead to the layer that was given')


def entry_not_assigned(evidence: UnrestoredVariable) -> Cause | None:
  """The file has what was looked for."""
  if evidence.entry not in evidence.stored:
    return None
  return Cause(f'the file has an entry {evidence.entry}, which was not assigned')


def renamed_attribute(evidence: UnrestoredVariable) -> Cause | None:
  """The file has no entry of the object path."""
  ending = evidence.entry.rpartition('/')[2]
  like = [path for path in evidence.unused if path.rpartition('/')[2] == ending]
  shown = (like or evidence.unused)[:_SHOWN]
  return Cause(
    f'object path {evidence.entry} has no entry in the file'
    + (f'; {", ".join(shown)} is unused' if shown else '')
    + ': an attribute was renamed, and restore() is silent; keep the names of attributes, and '
    'call assert_existing_objects_matched() on what restore() returns'
  )
