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
    stage: the first stage that calls it; the ladder itself needs a required one.
    of_reference: whether a recorded reference answers for it, so that the case must not.
    compared_with_recording: whether a recording has its result too, so that both must agree.
  """

  name: str
  arguments: tuple[str, ...] = ()
  taken: tuple[str, ...] = ()
  required: bool = False
  stage: str = 'no_new_variables'
  of_reference: bool = False
  compared_with_recording: bool = False


_LOSS = ('outputs', 'labels')

HOOKS = (
  Hook('build_tf1_graph', ('inputs', 'training'), required=True, of_reference=True),
  Hook('make_tf2_layer', required=True),
  Hook('make_inputs', required=True, compared_with_recording=True),
  Hook('call_tf2_layer', ('layer', 'inputs', 'training')),
  Hook('fill_values', ('name', 'shape', 'dtype'), stage='zero_randomness'),
  Hook('loss', ('outputs',), stage='gradients', compared_with_recording=True),
  Hook('tf2_regularization_losses', ('layer',), stage='zero_randomness'),
  Hook('make_labels', stage='loss', compared_with_recording=True),
  Hook('tf1_loss', _LOSS, stage='loss', of_reference=True),
  Hook('tf2_loss', _LOSS, stage='loss'),
  Hook('tf1_total_loss', _LOSS, stage='loss', of_reference=True),
  Hook('tf2_total_loss', ('layer', *_LOSS), stage='loss'),
  Hook('tf1_metrics', _LOSS, stage='loss'),
  Hook('tf2_metrics', _LOSS, stage='loss'),
  Hook('loss_examples', stage='loss'),
  Hook('make_tf1_optimizer', stage='training_steps', of_reference=True),
  Hook('make_tf1_train_op', ('loss',), _LOSS, stage='training_steps', of_reference=True),
  Hook('make_tf2_optimizer', stage='training_steps'),
  Hook('tf2_train_step', ('layer', 'inputs'), ('labels', 'optimizer'), stage='training_steps'),
  Hook('tf1_checkpoint', stage='checkpoint'),
  Hook('load_tf1_checkpoint', ('layer', 'path'), ('optimizer',), stage='checkpoint'),
  Hook('save_tf2_checkpoint', ('layer', 'path'), stage='checkpoint'),
  Hook('load_tf2_checkpoint', ('layer', 'path'), stage='checkpoint'),
)
REQUIRED = tuple(hook.name for hook in HOOKS if hook.required)
OF_REFERENCE = tuple(hook.name for hook in HOOKS if hook.of_reference)
COMPARED_WITH_RECORDING = tuple(hook.name for hook in HOOKS if hook.compared_with_recording)
