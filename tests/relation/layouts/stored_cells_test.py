"""Tests of tf2verify.relation.layouts.stored_cells: variables of recurrent cells."""

from absl.testing import absltest, parameterized

from tf2verify.relation.layouts.cell_layouts import USUAL_ORDERS, held_entries
from tf2verify.relation.layouts.stored_cells import cell_pairs, permutations, stored_cells

X, H = 2, 3


def cells(repeated=None, side=1, **shapes):
  shapes = {name.replace('__', '/'): shape for name, shape in shapes.items()}
  return stored_cells(shapes, set(shapes) if repeated is None else repeated, USUAL_ORDERS[side])


def gates_of(cell):
  return {stored.name: (stored.rows, stored.gates) for stored in cell.variables}


_PER_GATE = {f'{kind}_{gate}': shape for gate in 'ifco' for kind, shape in
             (('W', (X, H)), ('U', (H, H)), ('b', (H,)))}  # fmt: skip


class StoredCellsTest(parameterized.TestCase):
  def test_a_variable_for_each_gate(self):
    (cell, *_) = cells(**_PER_GATE)
    self.assertEqual((cell.gates, cell.inputs, cell.units), (4, X, H))
    self.assertEqual((cell.order, cell.is_told), ('ifco', True))
    self.assertEqual(gates_of(cell)['W_f'], ('x', (1,)))
    self.assertEqual(gates_of(cell)['U_f'], ('h', (1,)))
    self.assertEqual(gates_of(cell)['b_o'], ('', (3,)))

  def test_gates_are_told_by_name_in_whatever_order_they_are_made(self):
    made = {name: _PER_GATE[name] for name in sorted(_PER_GATE, reverse=True)}
    (cell, *_) = cells(**made)
    found = gates_of(cell)
    for gate in 'ifco':
      numbers = {found[f'{kind}_{gate}'][1] for kind in 'WUb'}
      self.assertEqual(numbers, {(cell.order.index(gate),)})

  @parameterized.parameters(
    ('input_gate forget_gate candidate output_gate', 'ifco'),
    ('in forget cell out', 'ifco'),
    ('Wi Wf Wg Wo', 'ifco'),
    ('f i o c', 'fioc'),
    ('reset update new', 'rzc'),
    ('Wz Wr Wh', 'zrc'),
    ('u r c', 'zrc'),
    ('one two three four', ''),
    ('first second third', ''),
  )
  def test_words(self, names, order):
    shapes = {f'{name}__kernel': (X + H, H) for name in names.split()}
    shapes |= {f'{name}__bias': (H,) for name in names.split()}
    cell = next(one for one in cells(**shapes) if one.units == H and len(one.names) == len(shapes))
    self.assertEqual(cell.order, order)

  def test_cells_of_one_kind_go_by_the_words_of_their_scopes(self):
    def both(one, other, shapes):
      return cells(
        **{f'm__{s}__cell__{n}': shape for s in (one, other) for n, shape in shapes.items()}
      )

    apart = {f'{kind}_{gate}': shape for gate in 'ifco' for kind, shape in
             (('k', (X + H, H)), ('b', (H,)))}  # fmt: skip
    ones = both('title', 'body', {'kernel': (X + H, 4 * H), 'bias': (4 * H,)})
    others = both('body_tower', 'title_tower', apart)
    found = [
      (min(one.names).split('/')[1], min(other.names).split('/')[1])
      for one, other in cell_pairs(ones, others, {})
    ]
    self.assertEqual(found, [('title', 'title_tower'), ('body', 'body_tower')])

  def test_cells_without_words_in_common_go_by_what_is_paired_in_their_scopes(self):
    whole = {f'{end}__{n}': s for end in ('fw', 'bw') for n, s in
             (('kernel', (X + H, 4 * H)), ('bias', (4 * H,)))}  # fmt: skip
    named = {'fw': 'rnn', 'bw': 'rnn_1'}
    others = {f'{end}__{name}': shape for end in ('rnn_1', 'rnn') for name, shape in
              _PER_GATE.items()}  # fmt: skip
    for told in (named, dict(zip(named, reversed(named.values()), strict=True))):
      pairs = cell_pairs(cells(**whole), cells(**others), dict.fromkeys(told.items(), 2))
      found = {min(a.names).split('/')[0]: min(b.names).split('/')[0] for a, b in pairs}
      self.assertEqual(found, told)

  def test_the_gates_of_two_cells_are_not_one_cell(self):
    shapes = {f'{end}__gates__{n}': s for end in ('fw', 'bw') for n, s in
              (('kernel', (X + H, 2 * H)), ('bias', (2 * H,)))}  # fmt: skip
    self.assertNotIn(4, {cell.gates for cell in cells(**shapes)})

  def test_what_nothing_divides_is_no_cell_of_several_gates(self):
    shapes = {'query/kernel': (12, 12), 'query/bias': (12,)}
    order = USUAL_ORDERS[1]
    self.assertTrue(stored_cells(shapes, set(shapes), order))
    found = stored_cells(shapes, set(shapes), order, whole=('query/kernel',))
    self.assertEqual([cell.gates for cell in found if cell.gates > 1], [])

  def test_what_takes_no_inputs_and_state_together_is_no_cell(self):
    shapes = {'head/kernel': (7, 9), 'head/bias': (9,)}
    order = USUAL_ORDERS[1]
    self.assertTrue(stored_cells(shapes, set(shapes), order))
    found = stored_cells(shapes, set(shapes), order, single=('head/kernel',))
    self.assertEqual([one for one in found if any(s.rows == 'x+h' for s in one.variables)], [])

  def test_two_gates_in_one_variable(self):
    shapes = {'gates__kernel': (X + H, 2 * H), 'gates__bias': (2 * H,)}
    shapes |= {'candidate__kernel': (X + H, H), 'candidate__bias': (H,)}
    cell = next(one for one in cells(side=0, **shapes) if one.units == H)
    self.assertEqual((cell.gates, cell.order), (3, 'rzc'))
    self.assertEqual(gates_of(cell)['gates/bias'], ('', (0, 1)))

  def test_kernels_of_one_shape_are_told_by_their_names(self):
    cell = cells(Wx=(H, 4 * H), Wh=(H, 4 * H), b=(4 * H,))[0]
    self.assertEqual({name: rows for name, (rows, _) in gates_of(cell).items()},
                     {'Wx': 'x', 'Wh': 'h', 'b': ''})  # fmt: skip

  @parameterized.parameters(
    {'W': (X + H, 4 * H), 'b': (4 * H,), 'g': (4 * H,)},  # eight biases
    {'w_x': (X, 4 * H), 'w_h': (H + 1, 4 * H), 'b': (4 * H,)},
    {'w_x': (X, 3 * H), 'w_h': (H, 4 * H)},
  )
  def test_what_is_no_cell_of_four_gates(self, **shapes):
    self.assertFalse([cell for cell in cells(**shapes) if cell.gates == 4 and cell.units == H])

  def test_layers_of_no_loop_are_no_cells(self):
    """The heads of an attention have the shapes of gates."""
    shapes = {f'{name}__kernel': (H, H) for name in ('query', 'key')}
    ones, others = cells((), **shapes), cells((), W=(H, 2 * H))
    self.assertEqual(list(cell_pairs(ones, others, {})), [])

  def test_kernels_of_an_attention_that_a_decoder_reads_in_each_step_are_no_cells(self):
    ones, others = cells(memory__kernel=(X + H, 3 * H)), cells(dense__kernel=(X + H, 3 * H))
    self.assertEqual(list(cell_pairs(ones, others, {})), [])

  @parameterized.parameters(
    {'attention': (2 * H, H), 'score': (H,)},
    {'query': (H, H)},
    {'query': (H, H), 'attention': (2 * H, H)},
  )
  def test_kernels_of_an_attention_beside_a_cell_do_not_hide_it(self, **more):
    shapes = {'decoder__W': (X + H, 4 * H), 'decoder__b': (4 * H,)}
    shapes |= {f'decoder__{name}': shape for name, shape in more.items()}
    cell = cells(**shapes)[0]
    self.assertEqual((cell.gates, cell.inputs, cell.state, cell.units), (4, X, H, H))
    self.assertEqual(cell.names, {'decoder/W', 'decoder/b'})

  def test_two_gates_of_a_cell_that_has_more_are_none_of_their_own(self):
    shapes = {'net__gates': (X + 4, 8), 'net__gates_bias': (8,)}
    shapes |= {'net__candidate': (X + 4, 4), 'net__candidate_bias': (4,)}
    self.assertEqual(max(cell.gates for cell in cells(**shapes)), 3)

  def test_each_variable_is_in_one_pair(self):
    shapes = {f'{end}__{name}': shape for end in ('fw', 'bw') for name, shape in _PER_GATE.items()}
    whole = {f'{end}__kernel': (X + H, 4 * H) for end in ('fw', 'bw')}
    whole |= {f'{end}__bias': (4 * H,) for end in ('fw', 'bw')}
    pairs = list(cell_pairs(cells(**whole), cells(**shapes), {}))
    self.assertLen(pairs, 2)
    for one, other in pairs:
      self.assertEqual({n[:2] for n in one.names}, {n[:2] for n in other.names})


class PermutationsTest(absltest.TestCase):
  def test_names_on_both_sides_leave_one(self):
    one = cells(side=0, basic_lstm_cell__kernel=(X + H, 4 * H), basic_lstm_cell__bias=(4 * H,))[0]
    other = cells(**_PER_GATE)[0]
    self.assertEqual(list(permutations(one, other)), [(0, 2, 1, 3)])

  def test_without_names_all_are_tried(self):
    one = cells(W=(X + H, 4 * H), b=(4 * H,))[0]
    other = cells(**_PER_GATE)[0]
    self.assertLen(set(permutations(one, other)), 24)

  def test_the_order_of_keras_comes_first(self):
    one = cells(side=0, lstm_cell__kernel=(X + H, 4 * H), lstm_cell__bias=(4 * H,))[0]
    other = cells(lstm_cell__kernel=(X, 4 * H), lstm_cell__recurrent_kernel=(H, 4 * H),
                  lstm_cell__bias=(4 * H,))[0]  # fmt: skip
    found = list(permutations(one, other))
    self.assertEqual((found[0], len(set(found))), ((0, 2, 1, 3), 24))

  def test_the_order_of_keras_comes_first_for_cells_with_names_of_their_own(self):
    one = cells(side=0, fw__kernel=(X + H, 4 * H), fw__bias=(4 * H,))[0]
    other = cells(cell__kernel=(X, 4 * H), cell__recurrent_kernel=(H, 4 * H),
                  cell__bias=(4 * H,))[0]  # fmt: skip
    found = list(permutations(one, other))
    self.assertEqual((found[0], len(set(found))), ((0, 2, 1, 3), 24))

  def test_cells_of_one_form_keep_their_order(self):
    one, other = (cells(**{f'{n}__kernel': (X + H, 4 * H)})[0] for n in 'ab')
    self.assertEqual(next(permutations(one, other)), (0, 1, 2, 3))


class HeldEntriesTest(absltest.TestCase):
  def test_variables_of_a_gate_are_paired_alone(self):
    one = cells(**_PER_GATE)[0]
    shapes = {f'{gate}__kernel': (X + H, H) for gate in 'ifco'}
    shapes |= {f'{gate}__bias': (H,) for gate in 'ifco'}
    entries = held_entries(one, cells(**shapes)[0])[0]
    self.assertEqual({(entry.tf1, entry.tf2) for entry in entries},
      {((f'W_{g}', f'U_{g}'), (f'{g}/kernel',)) for g in 'ifco'}
      | {((f'b_{g}',), (f'{g}/bias',)) for g in 'ifco'})  # fmt: skip

  def test_state_above_the_inputs_is_tried(self):
    one = cells(**_PER_GATE)[0]
    shapes = {'kernel': (X + H, 4 * H), 'bias': (4 * H,)}
    found = held_entries(one, cells(**shapes)[0])
    layouts = {entry.layout for entries in found for entry in entries if len(entry.tf1) > 4}
    self.assertTrue(any('(x+h)' in layout for layout in layouts))
    self.assertTrue(any('(h+x)' in layout for layout in layouts))


if __name__ == '__main__':
  absltest.main()
