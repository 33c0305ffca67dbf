"""What a derived map leaves open, and what speaks against it, in sentences."""

from collections.abc import Sequence

from tf2verify.records.wording import listed
from tf2verify.relation.derivation.flattened_rows import order_of_rows
from tf2verify.relation.derivation.result import Derivation
from tf2verify.relation.layouts.map_entry import MapEntry

_SHOWN = 8


def doubts_of(
  found: Derivation,
  agree: tuple[bool, bool],
  apart: int | None,
  turned: Sequence[MapEntry],
  flattened: Sequence[MapEntry],
) -> list[str]:
  """Returns what is open.

  Args:
    found: what the graphs tell.
    agree: whether the outputs agree through the map that the graphs tell, and whether they do
      through that in which clear names win.
    apart: the first place whose numbers differ; None without one.
    turned: entries whose parts numbers have put in another order.
    flattened: entries whose rows are in the order in which each side flattens something.
  """
  best_agrees, kept_agrees = agree
  told = ''
  if best_agrees and not kept_agrees:
    told = '; with the two exchanged the outputs agree, and as they are paired they do not'
  doubts = [
    f'{name} and {clear} belong together by name, but the port uses {clear} where tf1 uses a '
    'different variable: either the port exchanges two variables, or their names are '
    f'misleading (then write the entries yourself); they are paired by name{told}'
    for name, clear in found.crossed[:_SHOWN]
  ]
  for names, own, other in (
    (found.tf1_left, 'tf1', 'the port'),
    (found.tf2_left, 'the port', 'tf1'),
  ):
    if names:
      shown = [f'{name} of {own} has no partner in {other}: {why}' for name, why in names[:_SHOWN]]
      more = f' and {len(names) - _SHOWN} more' if len(names) > _SHOWN else ''
      doubts.append('; '.join(shown) + more)
  if flattened:
    doubts.append(_of_rows(flattened))
  if best_agrees and turned:
    doubts.append(_of_order(turned))
  if best_agrees:
    return doubts
  if found.exchangeable:
    doubts.append(
      f'by order only: {listed(found.exchangeable, most=5)}; they are interchangeable, '
      'and the outputs do not confirm the order; names or a look at the port decide'
    )
  if apart is not None:
    place = found.places[apart]
    doubts.append(
      f'the numbers of both sides differ first at {", ".join(place.variables) or "a place"}: '
      'there, or just before, the port differs, or the map is wrong'
    )
  return doubts


def _of_rows(flattened: Sequence[MapEntry]) -> str:
  """Returns that the port flattens in another order, which a map of rows makes up for."""
  first = flattened[0]
  one, other = order_of_rows(first)
  more = f' (and {len(flattened) - 1} more entries)' if len(flattened) > 1 else ''
  return (
    f'{first.tf2[0]}{more}: rows in the order of {other}, where tf1 has {one}, since the port '
    'flattens axes in a different order; weights of tf1 fit only through this layout, and if they '
    'are to be loaded as they are, the port is wrong'
  )


def _of_order(turned: Sequence[MapEntry]) -> str:
  """Returns that numbers alone tell which part is which."""
  first = turned[0]
  whole, side = (first.tf1, 'the port') if len(first.tf1) == 1 else (first.tf2, 'tf1')
  parts = first.tf2 if len(first.tf1) == 1 else first.tf1
  more = f' (and {len(turned) - 1} more entries)' if len(turned) > 1 else ''
  return (
    f'{", ".join(parts)} are parts of {whole[0]} in a different order from that of {side}{more}: '
    f'with layout {first.layout} the outputs agree, and with the order of {side} they do not; if '
    'the names of the parts say otherwise, the port exchanges them'
  )
