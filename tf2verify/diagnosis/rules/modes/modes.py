"""Why a port computes one thing in one execution mode and another in the next: a row each."""

from tf2verify.diagnosis.evidence.modes import ModeEvidence, PythonState
from tf2verify.diagnosis.rules.rule import Sentence

TRAINING_NOT_PASSED = Sentence[ModeEvidence](
  lambda seen: seen.computes_inference,
  'embedded in a model, the port computes in training mode what it computes in inference mode: '
  '`training` does not reach it; take it as a parameter of `call`',
)
LOSS_READS_THE_GRAPH = Sentence[ModeEvidence](
  lambda seen: seen.is_loss_alone and seen.loss_of_constants_agrees(),
  'the loss differs in a tf.function although the outputs are equal; given the same outputs as '
  "constants, it is that of eager mode: it inspects the operation that made its input, as Keras' "
  'crossentropies do with a Softmax or Sigmoid in a graph: give it logits and from_logits=True',
)
NUMBER_OF_REPLICAS = Sentence[ModeEvidence](
  lambda seen: seen.factor is not None,
  'on each of the two replicas, every tensor that differs is {0.factor:g} times that of eager '
  'mode: the port computes with the number of replicas, or sums over them; TF1 had one',
)
PYTHON_STATE = Sentence[PythonState](
  lambda seen: True,
  'the port computes something different at its next call from the same values and inputs, also in '
  'eager mode: {0.source}, which a tf.function reads once, when it is traced: keep it in a '
  'tf.Variable, pass it as a tensor, or draw it by tf.random',
)
