"""What mistakes leave in graphs and arrays, for rules to look for."""
