"""Known porting mistakes, a function or a row of a table each; `RULES` is the only registry."""

from typing import Any

from tf2verify.diagnosis.evidence.checkpoint import (
  RestoredValue,
  UnreadVariable,
  UnrestoredVariable,
)
from tf2verify.diagnosis.evidence.failed_stage import FailedStage
from tf2verify.diagnosis.evidence.initial_values import OtherDistribution, SharedNumbers
from tf2verify.diagnosis.evidence.losses import (
  ExtremeLosses,
  LossEvidence,
  LossOfOutput,
  MetricEvidence,
  RepeatedLoss,
  TotalLossEvidence,
)
from tf2verify.diagnosis.evidence.modes import ModeEvidence, PythonState
from tf2verify.diagnosis.evidence.training import TrainingEvidence
from tf2verify.diagnosis.evidence.variables import (
  CopiedScope,
  CreatedVariable,
  ExtraVariables,
  MissingVariables,
)
from tf2verify.diagnosis.evidence.variation import OtherProcesses, OtherVersion, VaryingOperation
from tf2verify.diagnosis.rules.checkpoint import kept_values, values
from tf2verify.diagnosis.rules.forward import attributes
from tf2verify.diagnosis.rules.forward.activations import activation, activation_order
from tf2verify.diagnosis.rules.forward.batch_norm_mode import batch_norm_mode
from tf2verify.diagnosis.rules.forward.concat_order import concat_order
from tf2verify.diagnosis.rules.forward.division_by_zero import division_by_zero
from tf2verify.diagnosis.rules.forward.draws import other_draw
from tf2verify.diagnosis.rules.forward.dropout import (
  dropout_position,
  dropout_presence,
  dropout_rate,
  noise_shape,
)
from tf2verify.diagnosis.rules.forward.embedding_partition import embedding_partition
from tf2verify.diagnosis.rules.forward.fixed_padding import fixed_padding
from tf2verify.diagnosis.rules.forward.flatten_order import flatten_order
from tf2verify.diagnosis.rules.forward.gelu_formula import gelu_formula
from tf2verify.diagnosis.rules.forward.hard_sigmoids import hard_sigmoid_slope, recurrent_activation
from tf2verify.diagnosis.rules.forward.integer_division import integer_division
from tf2verify.diagnosis.rules.forward.lstm import lstm_forget_bias, lstm_gate_order
from tf2verify.diagnosis.rules.forward.moving_averages import (
  biased_variance,
  moving_average_momentum,
  update_count,
  variance_count,
)
from tf2verify.diagnosis.rules.forward.outer_broadcast import outer_broadcast
from tf2verify.diagnosis.rules.forward.regularization import (
  depthwise_regularizer,
  weight_decay_factor,
)
from tf2verify.diagnosis.rules.forward.resize_sampling import resize_sampling
from tf2verify.diagnosis.rules.forward.sequences import (
  forgotten_mask,
  needless_mask,
  reversed_padding,
  sequence_end,
)
from tf2verify.diagnosis.rules.forward.softmax_masks import (
  forgotten_softmax_mask,
  needless_softmax_mask,
  softmax_mask_value,
)
from tf2verify.diagnosis.rules.gradients.gradient_override import gradient_override
from tf2verify.diagnosis.rules.gradients.loss_scale import loss_scale
from tf2verify.diagnosis.rules.gradients.stopped import (
  label_gradient,
  stop_gradient,
  stopped_output,
)
from tf2verify.diagnosis.rules.initial_values import distributions
from tf2verify.diagnosis.rules.initial_values.initializer_scale import initializer_scale
from tf2verify.diagnosis.rules.losses import batches, totals
from tf2verify.diagnosis.rules.losses.auc import auc_summation
from tf2verify.diagnosis.rules.losses.clipped_logits import clipped_logits
from tf2verify.diagnosis.rules.losses.denominators import loss_denominator
from tf2verify.diagnosis.rules.losses.formulas import loss_formula
from tf2verify.diagnosis.rules.losses.smoothing import label_smoothing
from tf2verify.diagnosis.rules.losses.unread_weights import unread_weights
from tf2verify.diagnosis.rules.modes import modes
from tf2verify.diagnosis.rules.rule import Rule
from tf2verify.diagnosis.rules.training import inference_mode, losses, parts
from tf2verify.diagnosis.rules.training.averages import (
  called_again,
  moving_average,
  paced_otherwise,
)
from tf2verify.diagnosis.rules.training.copies import soft_copies
from tf2verify.diagnosis.rules.training.counts import count_of_steps, counted_state
from tf2verify.diagnosis.rules.training.variances import biased_variance_in_steps
from tf2verify.diagnosis.rules.updates.amsgrad import amsgrad
from tf2verify.diagnosis.rules.updates.centering import centering
from tf2verify.diagnosis.rules.updates.clipped_slots import clipping_in_slots
from tf2verify.diagnosis.rules.updates.clipping import clipping
from tf2verify.diagnosis.rules.updates.decays import decayed_variables
from tf2verify.diagnosis.rules.updates.further_settings import further_settings
from tf2verify.diagnosis.rules.updates.further_updates import updated_by_another
from tf2verify.diagnosis.rules.updates.learning_rates import learning_rate
from tf2verify.diagnosis.rules.updates.own_penalties import own_penalty
from tf2verify.diagnosis.rules.updates.own_steps import (
  own_clipping,
  own_nesterov,
  own_velocity,
  slot_starts,
)
from tf2verify.diagnosis.rules.updates.repeated_rows import repeated_rows
from tf2verify.diagnosis.rules.updates.restarts import kept_slots, restarted_slots
from tf2verify.diagnosis.rules.updates.settings import beyond_epsilon, optimizer_epsilon
from tf2verify.diagnosis.rules.variables import creations, leftovers
from tf2verify.diagnosis.rules.variation import operations
from tf2verify.records.initial_value import JudgedStart

# Of one kind of evidence, the most specific first: reports show them in this order.
RULES: tuple[Rule[Any], ...] = (
  # Variables.
  Rule('refused_creation', CreatedVariable, creations.REFUSED_CREATION),
  Rule('layer_built_in_call', CreatedVariable, creations.layer_built_in_call),
  Rule('variable_made_in_call', CreatedVariable, creations.VARIABLE_MADE_IN_CALL),
  Rule('no_variable_store', CreatedVariable, creations.NO_VARIABLE_STORE),
  Rule('scope_counts_up', CreatedVariable, creations.scope_counts_up),
  Rule('path_of_later_call', CreatedVariable, creations.PATH_OF_LATER_CALL),
  Rule('missing_scale', MissingVariables, leftovers.MISSING_SCALE),
  Rule('missing_center', MissingVariables, leftovers.MISSING_CENTER),
  Rule('missing_bias', MissingVariables, leftovers.missing_bias),
  Rule('attention_projections', MissingVariables, leftovers.attention_projections),
  Rule('extra_scale', ExtraVariables, leftovers.EXTRA_SCALE),
  Rule('extra_center', ExtraVariables, leftovers.EXTRA_CENTER),
  Rule('extra_bias_of_normalized', ExtraVariables, leftovers.extra_bias_of_normalized),
  Rule('extra_bias', ExtraVariables, leftovers.extra_bias),
  Rule('untied_weights', ExtraVariables, leftovers.untied_weights),
  Rule('two_objects_for_one', CopiedScope, leftovers.two_objects_for_one),
  Rule('one_object_for_two', CopiedScope, leftovers.one_object_for_two),
  # Initial values; further below, those of which the numbers are those of tf1, scaled.
  Rule('other_distribution', OtherDistribution, distributions.other_distribution),
  Rule('drawn_on_one_side', JudgedStart, distributions.DRAWN_ON_ONE_SIDE),
  Rule('shared_initializer', SharedNumbers, distributions.SHARED_INITIALIZER),
  Rule('shared_in_tf1', SharedNumbers, distributions.SHARED_IN_TF1),
  # What a call of the model computes, and its gradients.
  Rule('outer_broadcast', FailedStage, outer_broadcast),
  Rule('clipped_logits', FailedStage, clipped_logits),
  Rule('inference_in_step', FailedStage, inference_mode.drawn_by_tf1_alone),
  Rule('activation_order', FailedStage, activation_order),
  Rule('batch_norm_mode', FailedStage, batch_norm_mode),
  Rule('biased_variance', FailedStage, biased_variance, predicted_by='training_steps'),
  Rule('variance_count', FailedStage, variance_count),
  Rule('fixed_padding', FailedStage, fixed_padding),
  Rule('moving_average_momentum', FailedStage, moving_average_momentum),
  Rule(
    'normalization_epsilon',
    FailedStage,
    attributes.NORMALIZATION_EPSILON,
    predicted_by='seeded_constant',
  ),
  Rule('reduction_axes', FailedStage, attributes.REDUCTION_AXES),
  Rule('resize_sampling', FailedStage, resize_sampling),
  Rule('strides', FailedStage, attributes.STRIDES),
  Rule('padding_default', FailedStage, attributes.PADDING_DEFAULT),
  Rule('update_count', FailedStage, update_count),
  Rule('activation', FailedStage, activation),
  Rule('lstm_gate_order', FailedStage, lstm_gate_order),
  Rule('lstm_forget_bias', FailedStage, lstm_forget_bias, predicted_by='seeded_constant'),
  Rule('recurrent_activation', FailedStage, recurrent_activation),
  Rule('hard_sigmoid_slope', FailedStage, hard_sigmoid_slope),
  Rule('gelu_formula', FailedStage, gelu_formula),
  Rule(
    'leaky_relu_slope', FailedStage, attributes.LEAKY_RELU_SLOPE, predicted_by='seeded_constant'
  ),
  Rule('flatten_order', FailedStage, flatten_order),
  Rule('arg_axis', FailedStage, attributes.ARG_AXIS),
  Rule('integer_division', FailedStage, integer_division),
  Rule('softmax_mask_value', FailedStage, softmax_mask_value),
  Rule('forgotten_softmax_mask', FailedStage, forgotten_softmax_mask),
  Rule('needless_softmax_mask', FailedStage, needless_softmax_mask),
  Rule('forgotten_mask', FailedStage, forgotten_mask),
  Rule('needless_mask', FailedStage, needless_mask),
  Rule('sequence_end', FailedStage, sequence_end),
  Rule('reversed_padding', FailedStage, reversed_padding),
  Rule('embedding_partition', FailedStage, embedding_partition),
  Rule('weight_decay_factor', FailedStage, weight_decay_factor, predicted_by='seeded_constant'),
  Rule('depthwise_regularizer', FailedStage, depthwise_regularizer),
  Rule('label_gradient', FailedStage, label_gradient),
  Rule('gradient_override', FailedStage, gradient_override),
  Rule('loss_scale', FailedStage, loss_scale),
  Rule('other_draw', FailedStage, other_draw),
  Rule('dropout_rate', FailedStage, dropout_rate),
  Rule('dropout_presence', FailedStage, dropout_presence),
  Rule('noise_shape', FailedStage, noise_shape),
  Rule('dropout_position', FailedStage, dropout_position),
  Rule('initializer_scale', FailedStage, initializer_scale),
  Rule('concat_order', FailedStage, concat_order),
  Rule('division_by_zero', FailedStage, division_by_zero),
  Rule('stop_gradient', FailedStage, stop_gradient),
  Rule('stopped_output', FailedStage, stopped_output),
  # Losses and metrics.
  Rule('loss_formula', LossOfOutput, loss_formula),
  Rule('label_smoothing', LossOfOutput, label_smoothing),
  Rule('loss_denominator', LossOfOutput, loss_denominator, predicted_by='loss'),
  Rule('unread_weights', LossEvidence, unread_weights),
  Rule('loss_zero_by_zero', LossEvidence, batches.loss_zero_by_zero),
  Rule('fixed_batch_size', LossEvidence, batches.fixed_batch_size),
  Rule('constant_offset', LossEvidence, batches.constant_offset),
  Rule('loss_with_state', RepeatedLoss, batches.loss_with_state),
  Rule('loss_of_extremes', ExtremeLosses, batches.loss_of_extremes),
  Rule('regularization_in_total', TotalLossEvidence, totals.regularization_in_total),
  Rule('loss_added_twice', TotalLossEvidence, totals.loss_added_twice),
  Rule('regularization_of_variables', TotalLossEvidence, totals.regularization_of_variables),
  Rule('regularization_factor', TotalLossEvidence, totals.regularization_factor),
  Rule('auc_summation', MetricEvidence, auc_summation),
  # Training steps.
  Rule('loss_of_next_step', TrainingEvidence, losses.loss_of_next_step),
  Rule('regularization_left_out', TrainingEvidence, losses.regularization_left_out),
  Rule('loss_factor', TrainingEvidence, losses.loss_factor),
  Rule('penalty_in_gradients', TrainingEvidence, losses.penalty_in_gradients),
  Rule('returned_loss', TrainingEvidence, losses.returned_loss),
  Rule('soft_copies', TrainingEvidence, soft_copies),
  Rule('step_without_effect', TrainingEvidence, parts.step_without_effect),
  Rule('averages_at_rest', TrainingEvidence, parts.averages_at_rest),
  Rule('pruned', TrainingEvidence, parts.pruned),
  Rule('updated_by_another', TrainingEvidence, updated_by_another),
  Rule('decayed_variables', TrainingEvidence, decayed_variables),
  Rule('clipping', TrainingEvidence, clipping),
  Rule('lazy_rows', TrainingEvidence, parts.lazy_rows),
  Rule('repeated_rows', TrainingEvidence, repeated_rows),
  Rule('further_settings', TrainingEvidence, further_settings),
  Rule('optimizer_epsilon', TrainingEvidence, optimizer_epsilon, predicted_by='training_steps'),
  Rule('update_rule', TrainingEvidence, beyond_epsilon),
  Rule('kept_slots', TrainingEvidence, kept_slots),
  Rule('restarted_slots', TrainingEvidence, restarted_slots),
  Rule('slot_starts', TrainingEvidence, slot_starts),
  Rule('own_clipping', TrainingEvidence, own_clipping),
  Rule('own_penalty', TrainingEvidence, own_penalty),
  Rule('clipping_in_slots', TrainingEvidence, clipping_in_slots),
  Rule('own_nesterov', TrainingEvidence, own_nesterov),
  Rule('own_velocity', TrainingEvidence, own_velocity),
  Rule('centering', TrainingEvidence, centering),
  Rule('amsgrad', TrainingEvidence, amsgrad),
  Rule('count_of_steps', TrainingEvidence, count_of_steps),
  Rule('counted_state', TrainingEvidence, counted_state),
  Rule('learning_rate', TrainingEvidence, learning_rate, predicted_by='training_steps'),
  Rule('called_again', TrainingEvidence, called_again),
  Rule('paced_otherwise', TrainingEvidence, paced_otherwise),
  Rule('biased_variance_in_steps', TrainingEvidence, biased_variance_in_steps),
  Rule('moving_average', TrainingEvidence, moving_average),
  # Restored checkpoints.
  Rule('partly_restored', RestoredValue, values.partly_restored),
  Rule('another_key', RestoredValue, values.another_key),
  Rule('reordered_value', RestoredValue, values.reordered_value),
  Rule('unbuilt_object', UnreadVariable, kept_values.UNBUILT_OBJECT),
  Rule('name_without_key', UnreadVariable, kept_values.NAME_WITHOUT_KEY),
  Rule('object_not_reached', UnreadVariable, kept_values.OBJECT_NOT_REACHED),
  Rule('key_left_unread', UnreadVariable, kept_values.KEY_LEFT_UNREAD),
  Rule('hidden_by_keras', UnrestoredVariable, kept_values.HIDDEN_BY_KERAS),
  Rule('untracked_variable', UnrestoredVariable, kept_values.UNTRACKED_VARIABLE),
  Rule('no_restore', UnrestoredVariable, kept_values.NO_RESTORE),
  Rule('unbuilt_port', UnrestoredVariable, kept_values.UNBUILT_PORT),
  Rule('another_object', UnrestoredVariable, kept_values.ANOTHER_OBJECT),
  Rule('entry_not_assigned', UnrestoredVariable, kept_values.ENTRY_NOT_ASSIGNED),
  Rule('renamed_attribute', UnrestoredVariable, kept_values.renamed_attribute),
  # Execution modes.
  Rule('training_not_passed', ModeEvidence, modes.TRAINING_NOT_PASSED),
  Rule('loss_reads_the_graph', ModeEvidence, modes.LOSS_READS_THE_GRAPH),
  Rule('number_of_replicas', ModeEvidence, modes.NUMBER_OF_REPLICAS),
  Rule('python_state', PythonState, modes.PYTHON_STATE),
  # Other bits from run to run.
  Rule('python_function', VaryingOperation, operations.PYTHON),
  Rule('clock', VaryingOperation, operations.CLOCK),
  Rule('unseeded_draw', VaryingOperation, operations.UNSEEDED_DRAW),
  Rule('unordered_pipeline', VaryingOperation, operations.PIPELINE),
  Rule('unordered_writes', VaryingOperation, operations.UNORDERED_WRITES),
  Rule('gpu_kernel', VaryingOperation, operations.gpu_kernel),
  Rule('hash_seed', OtherProcesses, operations.HASH_SEED),
  Rule('each_process_differs', OtherProcesses, operations.EACH_PROCESS_DIFFERS),
  Rule('state_of_this_process', OtherProcesses, operations.STATE_OF_THIS_PROCESS),
  Rule('kernel_of_another_version', OtherVersion, operations.kernel_of_another_version),
)
