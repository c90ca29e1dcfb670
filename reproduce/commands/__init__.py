"""The commands of `reproduce`, one module for each thing that people do with it."""
