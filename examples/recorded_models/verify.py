"""Verifies the ports against recordings that were made anew.

    python -m examples.recorded_models.verify DIR [NAME ...]

DIR is what `record` has written. Where a recording of a model is committed, the two are
compared. Each case of this folder (or of the models named) climbs the ladder with the
recording of its model in DIR; of those whose recording says what the committed one does,
with which `equivalence_test.py` climbs, only the first. Exits with 1 where a port does not
pass, or a recording says something else.
"""

import argparse
import pathlib
import sys

import tf2verify
from examples.recorded_models import equivalence_test, full_size_case, same_recording

COMMITTED = pathlib.Path(__file__).parent / 'recordings'
_MODULES = (equivalence_test, full_size_case)


def cases(folder: pathlib.Path) -> dict[str, type[tf2verify.EquivalenceCase]]:
  """Returns the cases whose models have a recording in a folder, by the recording's name."""
  found = {}
  for module in _MODULES:
    for case in vars(module).values():
      if isinstance(case, type) and issubclass(case, tf2verify.EquivalenceCase):
        path = folder.resolve() / pathlib.Path(case.tf1_recording).name
        if path.is_dir():
          # In the module of the case, so that the TF1 code is found beside it.
          members = {'tf1_recording': str(path), '__module__': case.__module__}
          found[path.name] = type(case.__name__, (case,), members)
  return found


def climbed(case: type[tf2verify.EquivalenceCase]) -> tf2verify.CaseVerdict:
  """Returns the verdict of a case, whose progress goes to the standard error stream."""
  print(f'{case.__name__} …', file=sys.stderr, flush=True)
  return tf2verify.verify(case)


def main() -> int:
  """Verifies and prints."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('folder', type=pathlib.Path)
  parser.add_argument('names', nargs='*', metavar='NAME', help='of models; all by default')
  arguments = parser.parse_args()
  folder, found, good = arguments.folder, cases(arguments.folder), True
  again = False  # whether one has climbed with another recording that says the same
  missing = set(arguments.names) - set(found)
  if missing or not found:
    print(f'{folder} has no recording of {", ".join(missing) or "any model"}', file=sys.stderr)
    return 1
  for name, case in found.items():
    if arguments.names and name not in arguments.names:
      continue
    is_same = False
    if (COMMITTED / name).is_dir():
      differences = same_recording.differences(COMMITTED / name, folder / name)
      is_same = not differences
      good &= is_same
      print(f'{name}: {"as committed" if is_same else "not as committed"}')
      for difference in differences:
        print(f'  {difference}')
    if is_same and again:
      continue
    again |= is_same
    verdict = climbed(case)
    print(verdict.to_text())
    good &= verdict.status is tf2verify.Status.PASSED
  return 0 if good else 1


if __name__ == '__main__':
  sys.exit(main())
