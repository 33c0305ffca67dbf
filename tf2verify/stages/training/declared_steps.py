"""How many training steps a case declares, and whether both sides can take them."""

from tf2verify.errors import CaseDefinitionError, NotApplicable
from tf2verify.sides import side
from tf2verify.stages.stage import CaseUnderTest

_TF1_HOOKS = ('make_tf1_optimizer', 'make_tf1_train_op')
_TF2_HOOKS = ('make_tf2_optimizer', 'tf2_train_step')


def declared_count(case: CaseUnderTest) -> int:
  """Returns how many steps to take.

  Raises:
    NotApplicable: a side declares no training.
    CaseDefinitionError: the number is none.
  """
  declaration = case.declaration
  hooks = (_TF1_HOOKS, _TF2_HOOKS)
  missing = [
    (one, other)
    for one, other in hooks
    if not declaration.declares(one) and not declaration.declares(other)
  ]
  reasons = [reason for one, _ in missing if (reason := case.tf1_training.reason_without(one))]
  lacking = [f'{one} (or {other})' for one, other in missing[len(reasons) :]]
  if lacking:
    reasons.append(f'the case declares no {" and no ".join(lacking)}')
  if reasons:
    raise NotApplicable('; '.join(reasons), _half(declaration, missing) if lacking else '')
  count = declaration.training_steps_to_take
  if not isinstance(count, int) or isinstance(count, bool) or count < 1:
    raise CaseDefinitionError(
      f'training_steps_to_take is {count!r}; it must be a number of steps, 1 or more: 3 by '
      'default, more where a learning-rate schedule has a boundary to cross'
    )
  return count


def _half(declaration: side.Declaration, missing: list[tuple[str, str]]) -> str:
  """Returns that a case declares the training of one side only; '' where it declares none."""
  if len(missing) > 1:
    return ''
  one, other = missing[0]
  declared = [hook for hook in (*_TF1_HOOKS, *_TF2_HOOKS) if declaration.declares(hook)]
  return (
    f'the case declares {" and ".join(declared)}, but neither {one} nor {other}: no training step '
    f'is compared; declare {one} as well'
  )
