"""Which sources count: what changes in the end if TF1's values or attributes are put there."""
