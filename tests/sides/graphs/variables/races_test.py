import tensorflow as tf
import tf_slim as slim
from absl.testing import absltest

from tests.counting import calls_of
from tf2verify.records.races import PROGRAM, Order, OrderKind, orders_of
from tf2verify.sides.graphs.lines.user_sources import user_source
from tf2verify.sides.graphs.variables.nested_races import RunSearch
from tf2verify.sides.graphs.variables.races import RaceSearch
from tf2verify.sides.process import state as process_state

v1 = tf.compat.v1
train = v1.train


def images():
  return v1.placeholder(tf.float32, [4, 5])


def dense(net, units, name):
  with v1.variable_scope(name):
    kernel = v1.get_variable('kernel', [net.shape[1], units])
    return tf.matmul(net, kernel) + v1.get_variable('bias', [units])


def loss_of(net):
  return tf.reduce_mean(net**2)


def loss():
  return loss_of(dense(tf.nn.relu(dense(images(), 6, 'one')), 3, 'two'))


def step():
  return train.get_or_create_global_step()


def applied(optimizer, value):
  """Returns what one step fetches, the loss first; nothing lets the update wait for its value."""
  return [value, optimizer.minimize(value, global_step=step())]


class RacesTestCase(absltest.TestCase):
  def search(self, build, references=False, control_flow_v2=True, looked_at=0):
    """Returns the search of what a function fetches, and its races.

    Of what the function returns, the first `looked_at` are fetched to be looked at.
    """
    switch = v1.enable_control_flow_v2 if control_flow_v2 else v1.disable_control_flow_v2
    switch()
    self.addCleanup(v1.enable_control_flow_v2)
    graph = tf.Graph()
    scope = v1.variable_scope('', use_resource=not references)
    with process_state.tf1_semantics(False), graph.as_default(), scope:
      fetches = [item.name for item in tf.nest.flatten(build()) if item is not None]
    self.graph_def, self.fetches = graph.as_graph_def(), fetches
    search = RaceSearch(self.graph_def, fetches[looked_at:], fetches[:looked_at])
    return search, search.races(lambda name: user_source(graph.get_operation_by_name(name)))

  def races(self, build, **how):
    return self.search(build, **how)[1]

  def assert_ordered(self, build, **how):
    self.assertEqual(self.races(build, **how), ())


class OrderedTest(RacesTestCase):
  """What training usually looks like: no race is claimed."""

  def assert_steps_ordered(self, build, **how):
    """Asserts it of a function that returns the loss, which is looked at, and a train op."""
    self.assert_ordered(build, looked_at=1, **how)

  def test_optimizers(self):
    for references in (False, True):
      for optimizer in (
        train.GradientDescentOptimizer(0.1),
        train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        train.AdamOptimizer(0.1),
        train.RMSPropOptimizer(0.1, 0.9, 0.9, centered=True),
        train.AdagradOptimizer(0.1),
        train.AdadeltaOptimizer(0.1),
        train.FtrlOptimizer(0.1),
      ):
        with self.subTest(type(optimizer).__name__, references=references):
          self.assert_steps_ordered(lambda o=optimizer: applied(o, loss()), references=references)

  def test_a_schedule_and_the_step_that_minimize_counts(self):
    def build():
      rate = train.exponential_decay(0.1, step(), 10, 0.9)
      return [*applied(train.AdamOptimizer(rate), loss()), rate]

    self.assert_steps_ordered(build)
    self.assert_steps_ordered(build, references=True)

  def test_clipping_by_the_global_norm(self):
    def build():
      value, variables = loss(), v1.trainable_variables()
      gradients, _ = tf.clip_by_global_norm(tf.gradients(value, variables), 1.0)
      optimizer = train.AdamOptimizer(0.1)
      return [value, optimizer.apply_gradients(zip(gradients, variables, strict=True), step())]

    self.assert_steps_ordered(build)
    self.assert_steps_ordered(build, references=True)

  def test_averages_after_the_update(self):
    def build():
      value, update = applied(train.AdamOptimizer(0.1), loss())
      average = train.ExponentialMovingAverage(0.9, num_updates=step())
      with tf.control_dependencies([update]):
        return [value, average.apply(v1.trainable_variables())]

    self.assert_steps_ordered(build)
    self.assert_steps_ordered(build, references=True)

  def test_update_ops_before_the_update(self):
    def build():
      value = loss_of(v1.layers.batch_normalization(images(), training=True))
      with tf.control_dependencies(v1.get_collection('update_ops')):
        return applied(train.AdamOptimizer(0.1), value)

    self.assert_steps_ordered(build)

  def test_slim_create_train_op(self):
    def build():
      net = slim.batch_norm(slim.fully_connected(images(), 4), is_training=True)
      return slim.learning.create_train_op(loss_of(net), train.AdamOptimizer(0.1), step())

    self.assert_ordered(build)
    self.assert_ordered(build, references=True)

  def test_a_metric_and_its_update(self):
    self.assert_ordered(lambda: v1.metrics.mean(loss())[1])
    self.assert_ordered(lambda: v1.metrics.mean(loss())[1], references=True)

  def test_rows_of_an_embedding(self):
    def build():
      table = v1.get_variable('table', [10, 5])
      rows = tf.nn.embedding_lookup(table, tf.constant([1, 2, 2, 4]))
      return applied(train.AdamOptimizer(0.1), loss_of(dense(rows, 3, 'out')))

    self.assert_steps_ordered(build)
    self.assert_steps_ordered(build, references=True)

  def test_recurrent_cells(self):
    def build():
      cell = v1.nn.rnn_cell.LSTMCell(4)
      inputs = v1.placeholder(tf.float32, [2, 3, 5])
      outputs, _ = v1.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)
      return applied(train.AdamOptimizer(0.1), loss_of(outputs))

    for control_flow_v2 in (True, False):
      with self.subTest(control_flow_v2=control_flow_v2):
        self.assert_steps_ordered(build, control_flow_v2=control_flow_v2)

  def test_regularization(self):
    def build():
      net = slim.fully_connected(images(), 3, weights_regularizer=slim.l2_regularizer(0.1))
      value = loss_of(net) + tf.add_n(v1.get_collection('regularization_losses'))
      return applied(train.MomentumOptimizer(0.1, 0.9), value)

    self.assert_steps_ordered(build)

  def test_spectral_normalization(self):
    def build():
      kernel = v1.get_variable('kernel', [5, 3])
      u = v1.get_variable('u', [1, 3], trainable=False)
      v = tf.nn.l2_normalize(tf.matmul(u, kernel, transpose_b=True))
      new = tf.nn.l2_normalize(tf.matmul(v, kernel))
      sigma = tf.matmul(tf.matmul(v, kernel), new, transpose_b=True)
      with tf.control_dependencies([u.assign(new)]):
        return tf.matmul(images(), kernel / sigma)

    self.assert_ordered(build)
    self.assert_ordered(build, references=True)

  def test_one_player_after_the_other(self):
    def build():
      with v1.variable_scope('', reuse=v1.AUTO_REUSE):
        fake = dense(dense(images(), 5, 'generator'), 1, 'critic')
        critic = [v for v in v1.trainable_variables() if v.op.name.startswith('critic')]
        update = train.AdamOptimizer(0.1).minimize(loss_of(fake), var_list=critic)
        with tf.control_dependencies([update]):
          again = loss_of(dense(dense(images(), 5, 'generator'), 1, 'critic'))
          others = [v for v in v1.trainable_variables() if v.op.name.startswith('generator')]
          return train.AdamOptimizer(0.1).minimize(again, var_list=others)

    self.assert_ordered(build)

  def test_a_batch_norm_that_a_placeholder_switches(self):
    def build():
      training = v1.placeholder(tf.bool, [])
      net = v1.layers.batch_normalization(images(), training=training)
      return [net, *v1.get_collection('update_ops')]

    self.assert_ordered(build)
    self.assert_ordered(build, control_flow_v2=False)
    self.assert_ordered(build, control_flow_v2=False, references=True)

  def test_two_branches_of_one_predicate(self):
    def build():
      training = v1.placeholder(tf.bool, [])
      count = v1.get_variable('count', [])
      write = v1.cond(training, lambda: count.assign(1.0) + 0.0, lambda: tf.constant(0.0))
      read = v1.cond(tf.logical_not(training), lambda: count + 1.0, lambda: tf.constant(0.0))
      return [write, read]

    for control_flow_v2 in (True, False):
      with self.subTest(control_flow_v2=control_flow_v2):
        self.assert_ordered(build, control_flow_v2=control_flow_v2)

  def test_counters_that_are_added_to_may_change_places(self):
    def build():
      return [v1.assign_add(step(), 1).op, v1.assign_add(step(), 2).op]

    self.assert_ordered(build)

  def test_what_is_not_fetched(self):
    def build():
      step().assign_add(1)
      return train.exponential_decay(0.1, step(), 10, 0.9)

    self.assert_ordered(build)

  def test_a_read_of_which_only_the_end_is_waited_for(self):
    def build():
      kernel = v1.get_variable('kernel', [])
      with tf.control_dependencies([kernel.read_value()]):
        waits = tf.constant(1.0) + 1.0
      return [waits, kernel.assign(2.0).op]

    self.assert_ordered(build)

  def test_a_shape(self):
    def build():
      kernel = v1.get_variable('kernel', [3])
      return [tf.shape(kernel), kernel.assign(tf.ones([3])).op]

    self.assert_ordered(build)
    self.assert_ordered(build, references=True)


class RacingTest(RacesTestCase):
  """Races, each named with both operations and lines."""

  def assert_race(self, build, variable, first, second, **how):
    """Asserts a race; first and second are the write or read, and words of its line."""
    found = [race for race in self.races(build, **how) if race.variable == variable]
    self.assertNotEmpty(found)
    race = found[0]
    for op, (writes, words) in ((race.first, first), (race.second, second)):
      self.assertIs(op.writes, writes)
      self.assertIn(words, op.source.code)
    return race

  def test_a_rate_that_reads_the_step(self):
    def build():
      value = loss()
      rate = train.polynomial_decay(0.1, step(), 4, 0.0)
      update = train.AdamOptimizer(rate).minimize(value)
      return tf.group(update, step().assign(step() + 1))

    for references in (False, True):
      with self.subTest(references=references):
        first, second = (False, 'polynomial_decay'), (True, 'step().assign')
        self.assert_race(build, 'global_step', first, second, references=references)

  def test_averages_beside_the_update(self):
    def build():
      update = train.AdamOptimizer(0.1).minimize(loss())
      return [update, train.ExponentialMovingAverage(0.9).apply(v1.trainable_variables())]

    for references in (False, True):
      with self.subTest(references=references):
        first, second = (True, 'minimize(loss())'), (False, 'ExponentialMovingAverage')
        self.assert_race(build, 'two/kernel', first, second, references=references)

  def test_a_batch_norm_that_is_used_twice(self):
    def build():
      net = images()
      options = {'updates_collections': None, 'is_training': True, 'scope': 'bn'}
      one = slim.batch_norm(net, **options)
      other = slim.batch_norm(net * 2, reuse=True, **options)
      return [one, other]

    for references in (False, True):
      with self.subTest(references=references):
        search, races = self.search(build, references=references)
        self.assertEqual(
          {race.variable for race in races}, {'bn/moving_mean', 'bn/moving_variance'}
        )
        self.assertLen(races, 6)
        self.assertIn('one = ', races[0].first.source.code)
        self.assertIn('other = ', races[0].second.source.code)
        kinds = (OrderKind.PROGRAM, OrderKind.REVERSE, OrderKind.READS)
        self.assertLen({search.edges(Order(kind), races) for kind in kinds}, 3)

  def test_a_metric_and_its_value(self):
    def build():
      with v1.variable_scope('metric'):
        return v1.metrics.mean(loss())

    races = self.races(build)
    self.assertLen(races, 2)
    self.assertEqual(
      [(race.first.writes, race.second.writes) for race in races], [(True, False)] * 2
    )

  def test_two_players_at_once(self):
    def build():
      with v1.variable_scope('', reuse=v1.AUTO_REUSE):
        real = loss_of(dense(images(), 1, 'critic'))
        fake = loss_of(dense(dense(images(), 5, 'generator'), 1, 'critic'))
        critic = [v for v in v1.trainable_variables() if v.op.name.startswith('critic')]
        others = [v for v in v1.trainable_variables() if v.op.name.startswith('generator')]
        one = train.AdamOptimizer(0.1).minimize(real, var_list=critic)
        return [one, train.AdamOptimizer(0.1).minimize(fake, var_list=others)]

    self.assert_race(build, 'critic/kernel', (False, 'matmul(net, kernel)'), (True, 'one ='))

  def test_a_gradient_that_reads_a_reference_variable(self):
    def build():
      value, variables = loss(), v1.trainable_variables()
      gradients = tf.gradients(value, variables)  # with no gate between gradients and updates
      optimizer = train.GradientDescentOptimizer(0.1)
      return optimizer.apply_gradients(zip(gradients, variables, strict=True))

    race = self.assert_race(
      build, 'two/kernel', (False, 'tf.gradients'), (True, 'apply_gradients'), references=True
    )
    self.assertEqual(race.first.op_type, 'MatMul')
    self.assert_ordered(build)  # a resource variable gives its readers a value that stays

  def test_an_operation_that_update_ops_write(self):
    def build():
      count = v1.get_variable('count', [])
      net = images() * count
      return [net, count.assign(2.0).op]

    self.assert_race(build, 'count', (False, 'images() * count'), (True, 'count.assign'))

  def test_a_loop(self):
    def build():
      count = v1.get_variable('count', [])
      total = v1.while_loop(lambda i, _: i < 3, lambda i, t: (i + 1, t + count), [0, 0.0])[1]
      return [total, count.assign_add(1.0).op]

    for control_flow_v2 in (True, False):
      for references in (False, True):
        with self.subTest(control_flow_v2=control_flow_v2, references=references):
          how = {'control_flow_v2': control_flow_v2, 'references': references}
          search, races = self.search(build, **how)
          self.assertLen(races, 1)
          for order in orders_of(races):
            self.assertNotEmpty(search.edges(order, races))

  def test_a_branch(self):
    def build():
      count = v1.get_variable('count', [])
      choice = v1.placeholder(tf.bool, [])
      read = v1.cond(choice, lambda: count + 1.0, lambda: tf.constant(0.0))
      return [read, count.assign_add(1.0).op]

    for control_flow_v2 in (True, False):
      with self.subTest(control_flow_v2=control_flow_v2):
        self.assertLen(self.races(build, control_flow_v2=control_flow_v2), 1)

  def test_a_function(self):
    def build():
      count = v1.get_variable('count', [])

      @tf.function(autograph=False)
      def read():
        return count + 1.0

      return [read(), count.assign_add(1.0).op]

    self.assertLen(self.races(build), 1)

  def test_state_that_a_race_reaches(self):
    def build():
      count, copy = v1.get_variable('count', []), v1.get_variable('copy', [])
      alone = v1.get_variable('alone', [])
      with tf.control_dependencies([alone.assign_add(1.0)]):
        other = copy.assign(count * 2.0)
      return [other.op, count.assign_add(1.0).op]

    search, _ = self.search(build)
    self.assertEqual(search.affected(), {'count', 'copy'})


class LookedAtTest(RacesTestCase):
  def losses_and_write(self):
    """Returns a value that only a loss reads, and what a step writes."""
    count, kernel = v1.get_variable('count', []), v1.get_variable('kernel', [])
    net = images() * kernel
    value = tf.reduce_mean(net) + count
    # The gradient of a mean reads no value.
    return [value, count.assign(2.0).op, kernel.assign_sub(tf.gradients(value, kernel)[0]).op]

  def test_a_read_for_the_loss_alone_is_no_race(self):
    search, races = self.search(self.losses_and_write, looked_at=1)
    self.assertEqual(races, ())
    self.assertEqual(search.affected(), frozenset())
    self.assertNotEmpty(self.races(self.losses_and_write))

  def test_it_comes_first_in_every_order(self):
    def build():
      fetches = self.losses_and_write()
      other = v1.get_variable('other', [])
      return [*fetches, other + 1.0, other.assign(1.0).op]

    search, races = self.search(build, looked_at=1)
    self.assertEqual({race.variable for race in races}, {'other'})
    for order in orders_of(races):
      edges = search.edges(order, races)
      for variable in ('count', 'kernel'):
        reads = {access.op for access in search.run.accesses()[variable] if not access.writes}
        self.assertTrue(any(before in reads for before, _ in edges), order)
        self.assertFalse(any(after in reads for _, after in edges), order)


class NestedTest(RacesTestCase):
  """What a branch, or a function, leaves open inside of it."""

  def nested(self, build, **how):
    self.search(build, **how)
    found = RunSearch(self.graph_def, self.fetches)
    return found, found.races(lambda op: None)

  @staticmethod
  def applied_and_zeroed(is_ordered):
    def build():
      kernel, total = v1.get_variable('kernel', [2]), v1.get_variable('total', [2])

      def update():
        applied = kernel.assign_sub(total / 2.0).op
        with tf.control_dependencies([applied] if is_ordered else []):
          zeroed = total.assign(tf.zeros([2])).op
        return tf.group(applied, zeroed)

      return [v1.cond(v1.placeholder(tf.bool, []), update, tf.no_op)]

    return build

  def test_a_branch(self):
    for control_flow_v2 in (True, False):
      with self.subTest(control_flow_v2=control_flow_v2):
        how = {'control_flow_v2': control_flow_v2}
        search, races = self.nested(self.applied_and_zeroed(False), **how)
        self.assertEqual([race.variable for race in races], ['total'])
        self.assertEqual(search.affected(), {'kernel', 'total'})
        edges = {search.edges(order, races) for order in orders_of(races)}
        self.assertGreater(len(edges), 1)
        functions = {edge.function for found in edges for edge in found}
        self.assertEqual('' not in functions, control_flow_v2)
        _, races = self.nested(self.applied_and_zeroed(True), **how)
        self.assertEqual(races, ())

  def test_a_branch_in_a_branch(self):
    def build():
      inner = self.applied_and_zeroed(False)
      return [v1.cond(v1.placeholder(tf.bool, []), lambda: tf.group(*inner()), tf.no_op)]

    _, races = self.nested(build)
    self.assertEqual([race.variable for race in races], ['total'])

  def test_a_function_orders_what_it_does(self):
    def build():
      total, copy = v1.get_variable('total', [2]), v1.get_variable('copy', [2])

      @tf.function(autograph=False)
      def both():
        copy.assign(total / 2.0)
        total.assign(tf.zeros([2]))
        return copy + 0.0

      return [both()]

    self.assertEqual(self.nested(build)[1], ())


class OrdersTest(RacesTestCase):
  def test_each_race_alone_as_well(self):
    def build():
      one, other = v1.get_variable('one', []), v1.get_variable('other', [])
      return [
        one + 0.0,
        other + 0.0,
        one.assign(1.0).op,
        other.assign(1.0).op,
      ]

    search, races = self.search(build)
    found = {frozenset(search.edges(order, races)) for order in orders_of(races)}
    self.assertLen(found, 4)

  def test_the_order_of_the_code(self):
    def build():
      count = v1.get_variable('count', [])
      return [count + 0.0, count.assign(1.0).op, count * 2.0]

    search, races = self.search(build)
    self.assertLen(races, 2)
    self.assertLen(search.edges(PROGRAM, races), 2)
    for before, after in search.edges(PROGRAM, races):
      self.assertTrue('Assign' in before or 'Assign' in after)

  def test_the_work_grows_with_the_graph_and_not_with_its_square(self):
    def build(layers):
      net = images()
      for number in range(layers):
        net = tf.nn.relu(dense(net, 5, f'layer_{number}'))
      value = loss_of(net)
      update = train.AdamOptimizer(0.1).minimize(value)
      return [update, step().assign(step() + 1).op, train.exponential_decay(0.1, step(), 9, 0.9)]

    work = []
    for layers in (40, 160):
      self.assertLen(self.races(lambda layers=layers: build(layers)), 1)
      graph = tf.Graph()
      with graph.as_default():
        fetches = [item.name for item in build(layers)]
      graph_def = graph.as_graph_def()
      work.append(
        calls_of(lambda graph_def=graph_def, fetches=fetches: RaceSearch(graph_def, fetches))
      )
    self.assertLess(work[1], 5 * work[0])


if __name__ == '__main__':
  absltest.main()
