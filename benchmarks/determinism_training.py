"""Trains a small convolutional net on scikit-learn's digits, by 10-fold cross-validation.

    python benchmarks/determinism_training.py [--epochs 3] [--folds 10]

Prints what `python -m tf2verify repeat` reads: the means over the folds of loss and
accuracy on the fold left out, the sum of all weights, and the seconds of training. It
sets no seed and no option of TensorFlow; the folds are the same in every run.
"""

import argparse
import os
import time

os.environ.setdefault('TF_USE_LEGACY_KERAS', '1')
os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import tensorflow as tf
from sklearn import datasets, model_selection

_FOLDS_SEED = 0


def make_model() -> tf.keras.Model:
  """Returns the net: two convolutions of 8 filters with pooling, 128 units, dropout of 0.2."""
  layers = tf.keras.layers
  return tf.keras.Sequential(
    [
      tf.keras.Input((8, 8, 1)),
      layers.Conv2D(8, 3, padding='same', activation='relu'),
      layers.MaxPooling2D(),
      layers.Conv2D(8, 3, padding='same', activation='relu'),
      layers.MaxPooling2D(),
      layers.Flatten(),
      layers.Dense(128, activation='relu'),
      layers.Dropout(0.2),
      layers.Dense(10),
    ]
  )


def main() -> None:
  """Trains one net per fold and prints the means."""
  parser = argparse.ArgumentParser()
  parser.add_argument('--epochs', type=int, default=3)
  parser.add_argument('--folds', type=int, default=10)
  options = parser.parse_args()
  digits = datasets.load_digits()
  images = (digits.images[..., np.newaxis] / 16).astype(np.float32)
  labels = digits.target.astype(np.int32)
  folds = model_selection.StratifiedKFold(options.folds, shuffle=True, random_state=_FOLDS_SEED)
  losses, accuracies, weights = [], [], 0.0
  seconds = 0.0
  for training, held_out in folds.split(images, labels):
    model = make_model()
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile('adam', loss, metrics=['accuracy'])
    start = time.perf_counter()
    model.fit(images[training], labels[training], 32, options.epochs, verbose=0)
    seconds += time.perf_counter() - start
    measured = model.evaluate(images[held_out], labels[held_out], 256, verbose=0)
    losses.append(measured[0])
    accuracies.append(measured[1])
    weights += sum(float(np.sum(weight, dtype=np.float64)) for weight in model.get_weights())
    tf.keras.backend.clear_session()
  print(f'loss={float(np.mean(losses))!r}')
  print(f'accuracy={float(np.mean(accuracies))!r}')
  print(f'weights={weights!r}')
  print(f'training_seconds={seconds:.3f}')


if __name__ == '__main__':
  main()
