"""What the names of variables tell: words, roles, scopes, renames; and pairs by name."""
