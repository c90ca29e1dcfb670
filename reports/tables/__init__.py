"""Tables of an experiment, and their file formats."""
