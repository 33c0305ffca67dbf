"""The outputs and labels that a case gives its losses besides the model's own."""

from collections.abc import Iterator

from tf2verify.errors import CaseDefinitionError
from tf2verify.records.loss_values import LossExample
from tf2verify.sides.hooks.user_code import user_code
from tf2verify.sides.losses import loss_function
from tf2verify.sides.side import Declaration


def own_examples(declaration: Declaration, model: LossExample) -> Iterator[LossExample]:
  """Yields the case's `loss_examples`.

  Args:
    declaration: the case.
    model: the model's outputs and labels, whose structure they share.

  Raises:
    CaseDefinitionError: an example is something else.
  """
  with user_code('case', 'loss_examples'):
    given = list(declaration.loss_examples())
  for item in given:
    yield _checked(item, model)


def _checked(item: object, model: LossExample) -> LossExample:
  if not isinstance(item, (tuple, list)) or len(item) != 3 or not isinstance(item[0], str):
    raise CaseDefinitionError(
      f'loss_examples gives {item!r:.80}; each item is (name, outputs, labels)'
    )
  name, outputs, labels = item
  found = loss_function.leaves_of(outputs), loss_function.leaves_of(labels)
  wanted = model.outputs, model.labels
  for what, mine, its in zip(('outputs', 'labels'), found, wanted, strict=True):
    if mine.keys() != its.keys():
      raise CaseDefinitionError(
        f'loss_examples gives {what} of a different structure in {name!r}: {_places(mine, what)}, '
        'the '
        f'model has {_places(its, what)}'
      )
    for path, array in mine.items():
      if array.dtype != its[path].dtype:
        raise CaseDefinitionError(
          f'loss_examples gives {what}{path} of dtype {array.dtype} in {name!r}; the model has '
          f'{its[path].dtype}'
        )
  return LossExample(name, *found, declared=True)


def _places(leaves: object, what: str) -> str:
  paths = sorted(leaves) if isinstance(leaves, dict) else []
  return ', '.join(f'{what}{path}' for path in paths) or f'no array in {what}'
