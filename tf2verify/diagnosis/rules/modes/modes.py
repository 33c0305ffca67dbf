"""Why a port computes one thing in one execution mode and another in the next."""

from tf2verify.diagnosis.evidence.modes import ModeEvidence, PythonState
from tf2verify.records.diagnosis import Cause


def training_not_passed(evidence: ModeEvidence) -> Cause | None:
  """A functional model calls it without `training`."""
  if not evidence.computes_inference:
    return None
  return Cause(
    'embedded, the port computes in training mode what it computes in inference mode: `training` '
    'does not reach it; take it as a parameter of `call`'
  )


def loss_reads_the_graph(evidence: ModeEvidence) -> Cause | None:
  """Keras' crossentropies look behind a Softmax or Sigmoid."""
  if not evidence.is_loss_alone or not evidence.loss_of_constants_agrees():
    return None
  return Cause(
    'the loss is another one in a tf.function although the outputs are equal; given the same '
    'outputs as constants, it is that of eager mode: it looks at the operation that made its '
    "input, as Keras' crossentropies do with a Softmax or Sigmoid in a graph: give it logits and "
    'from_logits=True'
  )


def number_of_replicas(evidence: ModeEvidence) -> Cause | None:
  """The port adds up over replicas."""
  if evidence.factor is None:
    return None
  return Cause(
    f'on each of the two replicas, every tensor that differs is {evidence.factor:g} times that of '
    'eager mode: the port reckons with the number of replicas, or adds up over them; TF1 had one'
  )


def python_state(evidence: PythonState) -> Cause | None:
  """What is in Python is read once, when a function is traced."""
  generator = evidence.generator
  source = f'it draws from {generator}' if generator else 'it depends on something in Python'
  return Cause(
    'the port computes something else at its next call from the same values and inputs, also in '
    f'eager mode: {source}, which a tf.function reads once, when it is traced: keep it in a '
    'tf.Variable, pass it as a tensor, or draw it by tf.random'
  )
