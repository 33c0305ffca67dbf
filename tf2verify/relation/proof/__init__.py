"""What of two graphs is proven to compute the same, whatever the inputs and variables hold."""
