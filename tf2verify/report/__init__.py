"""Records in, text out: the terminal, and the files of a run."""
