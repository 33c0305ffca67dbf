"""Messages of TensorFlow that name no fix, and what makes them where a TF1 model is ported."""

import re

_KNOWN = (
  (
    re.compile(r"You must feed a value for placeholder tensor '([^']*)'"),
    'the placeholder {} is made by the code of the model, and nothing feeds it: build on the '
    '`inputs` that build_tf1_graph is given, which are placeholders; write a number for a setting '
    'such as keep_prob (or tf.compat.v1.placeholder_with_default)',
  ),
  (
    re.compile('Attempting to capture an EagerTensor'),
    'it uses a variable or a tensor that was made outside of the graph, as where its module is '
    'imported: make it inside build_tf1_graph, or in a function that this calls',
  ),
  (
    re.compile(r'placeholder\(\) is not compatible with eager execution'),
    'it was called where no graph is built, as where its module is imported: build_tf1_graph is '
    'given placeholders, its `inputs`; move what is built on them into a function that it calls',
  ),
)


def hint(message: str) -> str:
  """Returns what to add to a message; '' where it is none of these."""
  for pattern, text in _KNOWN:
    found = pattern.search(message)
    if found is not None:
      return '; ' + text.format(*map(repr, found.groups()))
  return ''
