"""Files of a port: checkpoints, SavedModels, files of Keras."""
