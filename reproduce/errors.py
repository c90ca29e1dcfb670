"""What a person is told in one line."""


class InputError(Exception):
    """Something a person gave cannot be used; the message is one line that says what to do."""


class WorkFailedError(Exception):
    """A job cannot be done; the message names it and says what to do. What was finished before is in the store."""
