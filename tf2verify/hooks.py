"""The methods that a case may override: one row for each."""

import dataclasses

# What `python -m tf2verify new` sets on the TF1 code that it puts in the place of the port.
PLACEHOLDER = 'is_placeholder'


@dataclasses.dataclass(frozen=True)
class Hook:
  """A method of a case.

  Attributes:
    name: the method's name.
    arguments: names of the arguments that it is always given, without `self`.
    taken: further arguments, given only where a case's definition names them.
    required: whether every case has to override it.
    of_reference: whether a recorded reference answers for it, so that the case must not.
    compared_with_recording: whether a recording has its result too, so that both must agree.
  """

  name: str
  arguments: tuple[str, ...] = ()
  taken: tuple[str, ...] = ()
  required: bool = False
  of_reference: bool = False
  compared_with_recording: bool = False


_LOSS = ('outputs', 'labels')

HOOKS = (
  Hook('build_tf1_graph', ('inputs', 'training'), required=True, of_reference=True),
  Hook('make_tf2_layer', required=True),
  Hook('make_inputs', required=True, compared_with_recording=True),
  Hook('call_tf2_layer', ('layer', 'inputs', 'training')),
  Hook('fill_values', ('name', 'shape', 'dtype')),
  Hook('loss', ('outputs',), compared_with_recording=True),
  Hook('tf2_regularization_losses', ('layer',)),
  Hook('make_labels', compared_with_recording=True),
  Hook('tf1_loss', _LOSS, of_reference=True),
  Hook('tf2_loss', _LOSS),
  Hook('tf1_total_loss', _LOSS, of_reference=True),
  Hook('tf2_total_loss', ('layer', *_LOSS)),
  Hook('tf1_metrics', _LOSS),
  Hook('tf2_metrics', _LOSS),
  Hook('loss_examples'),
  Hook('make_tf1_optimizer', of_reference=True),
  Hook('make_tf1_train_op', ('loss',), _LOSS, of_reference=True),
  Hook('make_tf2_optimizer'),
  Hook('tf2_train_step', ('layer', 'inputs'), ('labels', 'optimizer')),
  Hook('tf1_checkpoint'),
  Hook('load_tf1_checkpoint', ('layer', 'path'), ('optimizer',)),
  Hook('save_tf2_checkpoint', ('layer', 'path')),
  Hook('load_tf2_checkpoint', ('layer', 'path')),
)
REQUIRED = tuple(hook.name for hook in HOOKS if hook.required)
OF_REFERENCE = tuple(hook.name for hook in HOOKS if hook.of_reference)
COMPARED_WITH_RECORDING = tuple(hook.name for hook in HOOKS if hook.compared_with_recording)
