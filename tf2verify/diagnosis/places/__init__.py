"""Where the sides part: operations and lines of both sides, and the runs to search in."""
