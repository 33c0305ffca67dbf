"""The user's hooks: called within a boundary, their inputs, and what their errors tell."""
