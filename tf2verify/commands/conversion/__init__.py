"""A checkpoint converted: into the files of the port, or back into a TF1 checkpoint."""
