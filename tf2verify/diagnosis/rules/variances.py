"""What to say of a variance that one side alone makes unbiased."""


def biased_variance_text(tf1_is_unbiased: bool) -> str:
  """Returns what is wrong, and what to do.

  Args:
    tf1_is_unbiased: whether TF1's moving average follows N/(N-1) times the variance of the batch;
      otherwise the port's does.
  """
  unbiased, biased = ('tf1', 'the port') if tf1_is_unbiased else ('the port', 'tf1')
  remedy = (
    'the batch norm of the port has to run the same kernel (a reshape to rank 4 around it does; '
    'that of Keras 3 never runs it: multiply what it adds to the average by N/(N-1)); or accept '
    "it in the case: accepted_causes = {'biased_variance': 'the reason'}"
    if tf1_is_unbiased
    else 'the batch norm of the port has to average the biased variance (fused=False)'
  )
  return (
    f'the moving variance follows the unbiased variance in {unbiased} (as fused batch norm '
    f'does, also slim on rank 2) and the biased one, (N-1)/N of it, in {biased}: {remedy}'
  )
