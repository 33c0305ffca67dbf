"""What is measured, side by side with what a user would do by hand."""
