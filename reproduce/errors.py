"""Errors that the command line prints as one line."""


class InputError(Exception):
    """The user's input cannot be used. The message is one line with the remedy."""


class WorkFailedError(Exception):
    """A job cannot be done. The message names the job and the remedy. Everything finished before is in the store."""
