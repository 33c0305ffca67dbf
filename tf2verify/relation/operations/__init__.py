"""Operations of both sides: which one is which, and which variables they read."""
