"""Where two graphs differ that are not proven to compute the same."""
