"""Optimizers of tf.contrib, which is gone, written anew after what they compute."""

import tensorflow as tf

v1 = tf.compat.v1


class AdamWOptimizer(v1.train.AdamOptimizer):
  """Takes a share of every weight, whatever the learning rate."""

  def __init__(self, weight_decay, **settings):
    super().__init__(**settings)
    self.weight_decay = weight_decay

  def apply_gradients(self, grads_and_vars, **arguments):
    pairs = [pair for pair in grads_and_vars if pair[0] is not None]
    with tf.control_dependencies([gradient for gradient, _ in pairs]):
      decays = [variable.assign_sub(self.weight_decay * variable) for _, variable in pairs]
    with tf.control_dependencies(decays):
      return super().apply_gradients(pairs, **arguments)


class NadamOptimizer(v1.train.AdamOptimizer):
  """Adam with a look-ahead of the first moment."""

  def _resource_apply_dense(self, grad, var):
    beta1_power, beta2_power = self._get_beta_accumulators()
    return tf.raw_ops.ResourceApplyAdam(
      var=var.handle,
      m=self.get_slot(var, 'm').handle,
      v=self.get_slot(var, 'v').handle,
      beta1_power=tf.identity(beta1_power),
      beta2_power=tf.identity(beta2_power),
      lr=self._lr_t,
      beta1=self._beta1_t,
      beta2=self._beta2_t,
      epsilon=self._epsilon_t,
      grad=grad,
      use_nesterov=True,
    )


class LazyAdamOptimizer(v1.train.AdamOptimizer):
  """Leaves rows alone that were not looked up, and their moments."""

  def _resource_apply_sparse(self, grad, handle, indices):
    first, second = self.get_slot(handle, 'm'), self.get_slot(handle, 'v')
    new_first = self._beta1_t * tf.gather(first, indices) + (1 - self._beta1_t) * grad
    new_second = self._beta2_t * tf.gather(second, indices) + (1 - self._beta2_t) * grad**2
    beta1_power, beta2_power = self._get_beta_accumulators()
    rate = self._lr_t * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
    move = rate * new_first / (tf.sqrt(new_second) + self._epsilon_t)
    with tf.control_dependencies([move]):
      return tf.group(
        first.scatter_update(tf.IndexedSlices(new_first, indices)),
        second.scatter_update(tf.IndexedSlices(new_second, indices)),
        handle.scatter_sub(tf.IndexedSlices(move, indices)),
      )


class AdaMaxOptimizer(v1.train.AdamOptimizer):
  """Adam with the greatest gradient in place of the mean of squares."""

  def _resource_apply_dense(self, grad, var):
    beta1_power, _ = self._get_beta_accumulators()
    return tf.raw_ops.ResourceApplyAdaMax(
      var=var.handle,
      m=self.get_slot(var, 'm').handle,
      v=self.get_slot(var, 'v').handle,
      beta1_power=tf.identity(beta1_power),
      lr=self._lr_t,
      beta1=self._beta1_t,
      beta2=self._beta2_t,
      epsilon=self._epsilon_t,
      grad=grad,
    )
