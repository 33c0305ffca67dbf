"""What values of both sides tell: arrays, constants, states, how they are related."""
