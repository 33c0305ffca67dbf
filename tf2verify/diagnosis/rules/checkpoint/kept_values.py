"""Variables that kept their values although something was restored: a row each."""

from tf2verify.diagnosis.evidence.checkpoint import UnreadVariable, UnrestoredVariable
from tf2verify.diagnosis.rules.rule import Sentence
from tf2verify.records.diagnosis import Cause

_SHOWN = 3
_UNBUILT = (
  'the object that was restored has no variables: it was not built, so the restore waits for its '
  'first call; restore the {0.layer} that is given, or call the object once before its variables '
  'are read'
)

# Of a TF1 checkpoint that the case's own loader read.
UNBUILT_OBJECT = Sentence[UnreadVariable](lambda seen: seen.waits and not seen.reached, _UNBUILT)
NAME_WITHOUT_KEY = Sentence[UnreadVariable](
  lambda seen: seen.by_name and not seen.is_key,
  'tf.train.Checkpoint.restore looks a name-based file up by the names of the variables and '
  'skips what it does not find; {0.variable} is not a key of the checkpoint (there it is '
  '{0.key}); read tf.train.load_checkpoint(path).get_tensor(key), or let tf2verify restore it, '
  'which uses variable_names',
)
OBJECT_NOT_REACHED = Sentence[UnreadVariable](
  lambda seen: seen.by_name and not seen.reached,
  '{0.variable} is not reachable from the objects given to tf.train.Checkpoint; unread: '
  '{0.unread}; assert_consumed() of a name-based file passes anyway',
)
KEY_LEFT_UNREAD = Sentence[UnreadVariable](
  lambda seen: True,
  'load_tf1_checkpoint leaves keys unread: {0.unread}; for a name-based file nothing reports '
  'this, not even assert_consumed(): assign every variable of layer.variables',
)

# Of the port's own checkpoint.
HIDDEN_BY_KERAS = Sentence[UnrestoredVariable](
  lambda seen: seen.of_keras and not seen.tracked,
  'tf.train.Checkpoint does not track what is in a list, dictionary or set of {0.layer} under '
  'Keras 3, so it does not save {0.variable}: save a .weights.h5 file, or keep each layer in an '
  'attribute of its own',
)
UNTRACKED_VARIABLE = Sentence[UnrestoredVariable](
  lambda seen: not seen.tracked,
  '{0.variable} is not reachable from an attribute of {0.layer}, so tf.train.Checkpoint does not '
  'save it: keep variables and layers in attributes (not in a closure or a wrapped object)',
)
NO_RESTORE = Sentence[UnrestoredVariable](
  lambda seen: not seen.restores,
  'load_tf2_checkpoint calls no tf.train.Checkpoint and does not change the variable',
)
UNBUILT_PORT = Sentence[UnrestoredVariable](lambda seen: seen.waits and not seen.entry, _UNBUILT)
ANOTHER_OBJECT = Sentence[UnrestoredVariable](
  lambda seen: not seen.entry,
  'the layer that was given is not reachable from the object that was restored',
)
ENTRY_NOT_ASSIGNED = Sentence[UnrestoredVariable](
  lambda seen: seen.entry in seen.stored,
  'the file has an entry {0.entry}, which was not assigned',
)


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
