"""The commands of `reproduce`, one module per command, and the options and output that they share."""
