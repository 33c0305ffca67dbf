"""What a variable is to its layer, as its name tells it, in any library's words."""

import re
from collections.abc import Sequence

# What libraries call the same thing: tf-slim, tf.layers, Keras, Sonnet. A batch
# norm's variance is `moving_variance` in all but Sonnet (`var`).
_SYNONYMS = {
  'weight': 'kernel',
  'weights': 'kernel',
  'w': 'kernel',
  'depthwise_weights': 'depthwise_kernel',
  'pointwise_weights': 'pointwise_kernel',
  'bias': 'bias',
  'biases': 'bias',
  'b': 'bias',
  'scale': 'gamma',
  'gamma': 'gamma',
  'offset': 'beta',
  'beta': 'beta',
  'mean': 'moving_mean',
  'moving_mean': 'moving_mean',
  'var': 'moving_variance',
  'variance': 'moving_variance',
  'moving_var': 'moving_variance',
  'moving_variance': 'moving_variance',
  'embedding': 'embeddings',
  'batchnorm': 'batch_normalization',
  'batch_norm': 'batch_normalization',
  'bn': 'batch_normalization',
  'fully_connected': 'dense',
  'linear': 'dense',
}

# The roles among them: two different ones are never the same variable.
_ROLES = frozenset(
  {'kernel', 'depthwise_kernel', 'pointwise_kernel', 'bias', 'gamma', 'beta', 'embeddings'}
  | {'moving_mean', 'moving_variance'}
)

# Of a name of several words, those that say as the last one what the variable is: `fc0_w`.
_LAST_WORDS = frozenset(
  ('w', 'weight', 'weights', 'kernel', 'b', 'bias', 'biases', 'gamma', 'beta')
)

# What a name may mean otherwise: the bias of a model is called its offset, and torch calls gain and
# shift of a norm weight and bias. A table of embeddings is the kernel of a product with sparse or
# one-hot rows.
_OTHERWISE = {
  'offset': 'bias',
  'scale': 'kernel',
  **dict.fromkeys(('bias', 'biases', 'b'), 'beta'),
  **dict.fromkeys(('weight', 'weights', 'w'), 'gamma'),
  **dict.fromkeys(('embedding', 'embeddings'), 'kernel'),
}

_COUNTER = re.compile(r'_(\d+)$')
WORD = re.compile('[a-z]+')


def words(name: str) -> tuple[str, ...]:
  """Returns the components of a name, in one library's words."""
  components = []
  for component in name.lower().split('/'):
    counter = _COUNTER.search(component)
    stem = component[: counter.start()] if counter else component
    components.append(_SYNONYMS.get(stem, stem) + (counter.group() if counter else ''))
  return tuple(components)


def without_counters(name: str) -> tuple[str, ...]:
  """Returns the words of a name without the numbers at their ends: `dense` for `dense_1`."""
  return tuple(_COUNTER.sub('', component) for component in words(name))


def same_but_counters(name: str, other: str) -> bool:
  """Returns whether two names differ in the numbers at the ends of their components only."""
  one, two = name.split('/'), other.split('/')
  return [_COUNTER.sub('', part) for part in one] == [_COUNTER.sub('', part) for part in two]


def counters(name: str) -> tuple[int, ...]:
  """Returns the numbers at the ends of the components of a name, 0 where there is none."""
  found = (_COUNTER.search(component) for component in name.split('/'))
  return tuple(int(counter.group(1)) if counter else 0 for counter in found)


def role(name: str) -> str:
  """Returns what the variable is to its layer: `kernel`, `gamma`; '' if the name does not say."""
  return _role_and_word(name)[0]


def _role_and_word(name: str) -> tuple[str, str]:
  """Returns the role of a name, and the word that says it."""
  last = _COUNTER.sub('', name.lower().rpartition('/')[2])
  known = _SYNONYMS.get(last, last)
  if known in _ROLES:
    return known, last
  word = last.rpartition('_')[2]
  return (_SYNONYMS.get(word, word), word) if word in _LAST_WORDS else ('', '')


def may_be_one(one: str, other: str) -> bool:
  """Returns whether two names allow that they are one variable: a gamma is no beta."""
  first, second = (
    {known, _OTHERWISE.get(word, known)} - {''} for known, word in map(_role_and_word, (one, other))
  )
  return not first or not second or not first.isdisjoint(second)


def owner(name: str) -> str:
  """Returns the scope that holds the variable: that of its layer; '' for the root."""
  return name.rpartition('/')[0]


def telling_words(names: Sequence[str]) -> list[frozenset[str]]:
  """Returns of each name the words that no other of them has: `gate` of `gate_conv/bias`."""
  found = [frozenset(WORD.findall(name.lower())) for name in names]
  return [
    own - frozenset(word for m, other in enumerate(found) if m != n for word in other)
    for n, own in enumerate(found)
  ]


def told_pairs(ones: Sequence[str], others: Sequence[str]) -> list[tuple[str, str]]:
  """Returns which of several names belong together: they share a word that tells both."""
  return [
    (one, other)
    for one, own in zip(ones, telling_words(ones), strict=True)
    for other, its in zip(others, telling_words(others), strict=True)
    if own & its
  ]


def told_one_to_one(ones: Sequence[str], others: Sequence[str]) -> dict[int, int]:
  """Returns which of several names belong together, by their positions; each in one pair at most.

  Nothing where names tell of one that it belongs to several.
  """
  found = [
    (n, m)
    for n, own in enumerate(telling_words(ones))
    for m, its in enumerate(telling_words(others))
    if own & its
  ]
  pairs = dict(found)
  return pairs if len(pairs) == len(set(pairs.values())) == len(found) else {}
