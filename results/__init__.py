"""Measured and published results: records, the store, statistics and published numbers. Imports no torch."""


class InputError(Exception):
    """What a user gave cannot be used. The message is one line with the remedy; the command line prints it alone."""
