"""Rules from operations to terms, an area each; `numbering` has them in one table."""
