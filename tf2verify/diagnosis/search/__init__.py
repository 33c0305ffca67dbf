"""The search: which edits, in which order, until the failed stage passes."""
