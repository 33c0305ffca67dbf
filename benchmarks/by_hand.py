"""What a careful user does without tf2verify: the migration guide's steps, one by one.

Follows TensorFlow's guide "Validate correctness & numerical equivalence": a TF1
graph is built anew for every run, a layer is made anew for every seeded run, and
`np.testing.assert_allclose` compares. Beyond the guide: all outputs instead of
the logits alone, tf-keras' own seeds, and the gradients of one training run.

    python benchmarks/by_hand.py {flagship,small}

prints the seconds of each step, the whole wall time and the peak resident memory.
"""

import time

_STARTED = time.perf_counter()  # TensorFlow's import is part of the user's wait

import argparse  # noqa: E402
import contextlib  # noqa: E402
import dataclasses  # noqa: E402
import os  # noqa: E402
import resource  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable, Iterator  # noqa: E402
from typing import Any  # noqa: E402

# What TF1-style code needs on a current TensorFlow, by hand.
os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402
import tf_keras.src.legacy_tf_layers.normalization as legacy_normalization  # noqa: E402

sys.modules['tf_keras.legacy_tf_layers'] = sys.modules['tf_keras.src.legacy_tf_layers']
sys.modules['tf_keras.legacy_tf_layers.normalization'] = legacy_normalization

v1 = tf.compat.v1
_SEED = 42
_RTOL, _ATOL = 1e-6, 1e-5  # the guide's


@dataclasses.dataclass(frozen=True)
class Subject:
  """A model and its port.

  Attributes:
    build: makes the TF1 outputs from a tensor and the training mode.
    make_layer: makes the port.
    inputs: what both are fed.
    logits: selects, from the outputs, the logits that the loss is taken of.
  """

  build: Callable[[tf.Tensor, bool], Any]
  make_layer: Callable[[], Any]
  inputs: np.ndarray
  logits: Callable[[Any], list[tf.Tensor]]

  def loss(self, outputs: Any) -> tf.Tensor:
    """Returns the cross-entropy of class 0, summed over the heads."""
    return tf.add_n(
      [-tf.reduce_mean(tf.nn.log_softmax(logits)[:, 0]) for logits in self.logits(outputs)]
    )


@dataclasses.dataclass(frozen=True)
class Run:
  """What one run yields; gradients by variable name."""

  outputs: list[np.ndarray]
  regularization_loss: np.float32
  gradients: dict[str, np.ndarray]


def flagship() -> Subject:
  """Inception-ResNet-v2, 299 x 299 pixels, 1000 classes."""
  from examples.inception_resnet_v2 import model, port

  return Subject(
    build=lambda inputs, training: model.inception_resnet_v2(inputs, 1000, training),
    make_layer=lambda: port.InceptionResnetV2(1000),
    inputs=np.random.RandomState(0).standard_normal((1, 299, 299, 3)).astype(np.float32),
    logits=lambda outputs: [outputs[0], outputs[1]['AuxLogits']],
  )


def small() -> Subject:
  """Three layers."""
  from benchmarks import small_model

  return Subject(
    build=lambda inputs, training: small_model.small_model(inputs, 10, training),
    make_layer=lambda: small_model.SmallModel(10),
    inputs=np.random.RandomState(0).standard_normal((4, 16, 16, 3)).astype(np.float32),
    logits=lambda outputs: [outputs],
  )


@contextlib.contextmanager
def no_variable_creations() -> Iterator[None]:
  """Fails if a variable is created inside."""

  def refuse(next_creator: Callable[..., Any], **arguments: Any) -> Any:
    del next_creator
    raise AssertionError(f'a later call created the variable {arguments.get("name")}')

  with tf.variable_creator_scope(refuse):
    yield


@contextlib.contextmanager
def seeded(mode: str) -> Iterator[None]:
  """Aligns TensorFlow's random ops, and tf-keras' initializer seeds, which the tool leaves out."""
  tf.keras.utils.set_random_seed(_SEED)
  tool = v1.keras.utils.DeterministicRandomTestTool(seed=_SEED, mode=mode)
  with tool.scope():
    yield


def assert_equal(tf1: Run, tf2: Run) -> None:
  """Compares regularization losses, outputs and gradients."""
  np.testing.assert_allclose(
    tf2.regularization_loss, tf1.regularization_loss, rtol=_RTOL, atol=_ATOL
  )
  for tf1_output, tf2_output in zip(tf1.outputs, tf2.outputs, strict=True):
    np.testing.assert_allclose(tf2_output, tf1_output, rtol=_RTOL, atol=_ATOL)
  assert tf1.gradients.keys() == tf2.gradients.keys()
  for name, gradient in tf1.gradients.items():
    # Chosen by trial: the guide's tolerance is below the rounding of these gradients.
    atol = _ATOL + 1e-4 * np.abs(gradient).max()
    np.testing.assert_allclose(tf2.gradients[name], gradient, rtol=1e-4, atol=atol, err_msg=name)


def run_graph(
  subject: Subject, training: bool, constant: float | None = None, gradients: bool = False
) -> Run:
  """Builds the TF1 graph and runs it once, with seeded or constant variables."""
  with tf.Graph().as_default(), v1.Session() as session:
    inputs = v1.placeholder(tf.float32, subject.inputs.shape)
    outputs = subject.build(inputs, training)
    regularization_loss = v1.losses.get_regularization_loss()
    gradient_tensors = {}
    if gradients:
      variables = v1.trainable_variables()
      found = v1.gradients(subject.loss(outputs), variables)
      gradient_tensors = {
        variable.name: gradient for variable, gradient in zip(variables, found, strict=True)
      }
    session.run(v1.global_variables_initializer())
    if constant is not None:
      session.run(
        [variable.assign(tf.ones_like(variable) * constant) for variable in v1.global_variables()]
      )
    fetches = (tf.nest.flatten(outputs), regularization_loss, gradient_tensors)
    return Run(*session.run(fetches, {inputs: subject.inputs}))


def run_layer(subject: Subject, layer: Any, training: bool, gradients: bool = False) -> Run:
  """Calls the port once."""
  inputs = tf.constant(subject.inputs)
  with contextlib.ExitStack() as stack:
    tape = stack.enter_context(tf.GradientTape()) if gradients else None
    outputs = layer(inputs, training=training)
    loss = subject.loss(outputs) if gradients else None
  found = {}
  if tape is not None:
    variables = layer.trainable_variables
    found = {
      variable.name: gradient.numpy()
      for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True)
    }
  return Run(
    [output.numpy() for output in tf.nest.flatten(outputs)],
    tf.add_n(layer.losses).numpy(),
    found,
  )


def step_1_no_new_variables(subject: Subject) -> None:
  """Later calls create no variable, in training mode and in inference."""
  layer = subject.make_layer()
  layer(tf.constant(subject.inputs), training=True)
  with no_variable_creations():
    layer(tf.constant(subject.inputs), training=True)
    layer(tf.constant(subject.inputs), training=False)


def step_2_variables(subject: Subject) -> None:
  """Count, names, shapes and trainable flags agree."""
  with tf.Graph().as_default():
    subject.build(v1.placeholder(tf.float32, subject.inputs.shape), False)
    tf1 = {
      variable.name: (variable.trainable, variable.shape) for variable in v1.global_variables()
    }
  layer = subject.make_layer()
  layer(tf.constant(subject.inputs), training=False)
  tf2 = {variable.name: (variable.trainable, variable.shape) for variable in layer.variables}
  assert len(tf2) == len(layer.variables)
  assert tf1 == tf2


def step_3_constant_variables(subject: Subject) -> None:
  """With every variable 0.001, inference gives the same numbers."""
  tf1 = run_graph(subject, training=False, constant=1e-3)
  layer = subject.make_layer()
  layer(tf.constant(subject.inputs), training=False)
  for variable in layer.variables:
    variable.assign(tf.ones_like(variable) * 1e-3)
  assert_equal(tf1, run_layer(subject, layer, training=False))


def step_4_seeded(subject: Subject, mode: str, training: bool, gradients: bool) -> None:
  """With aligned random numbers, both sides give the same numbers."""
  with seeded(mode):
    tf1 = run_graph(subject, training, gradients=gradients)
  with seeded(mode):
    tf2 = run_layer(subject, subject.make_layer(), training, gradients)
  assert_equal(tf1, tf2)
  print(f'  regularization loss: tf1 {tf1.regularization_loss!s}, tf2 {tf2.regularization_loss!s}')


def main() -> None:
  """Runs the steps of the chosen model."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('model', choices=['flagship', 'small'])
  subject = {'flagship': flagship, 'small': small}[parser.parse_args().model]()
  steps: list[tuple[str, Callable[[], None]]] = [
    ('1 no new variables', lambda: step_1_no_new_variables(subject)),
    ('2 variables', lambda: step_2_variables(subject)),
    ('3 all variables 0.001', lambda: step_3_constant_variables(subject)),
  ]
  for mode in ('constant', 'num_random_ops'):
    for training in (False, True):
      gradients = training and mode == 'num_random_ops'
      steps.append(
        (
          f'4 {mode}, {"training" if training else "inference"}'
          + (', gradients' if gradients else ''),
          lambda mode=mode, training=training, gradients=gradients: step_4_seeded(
            subject, mode, training, gradients
          ),
        )
      )
  for name, step in steps:
    started = time.perf_counter()
    step()
    print(f'step {name}: {time.perf_counter() - started:.1f} s', flush=True)
  peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB on Linux
  print(f'total: {time.perf_counter() - _STARTED:.1f} s wall, {peak / 1024:.0f} MiB peak RSS')


if __name__ == '__main__':
  main()
