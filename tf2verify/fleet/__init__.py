"""Many cases: each in a process of its own, their verdicts in a journal that survives a crash."""
