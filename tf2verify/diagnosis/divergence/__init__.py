"""Where the sides first diverge: runs from which any tensor can be fetched, and tried out."""
