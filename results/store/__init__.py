"""Where results are kept. Its error is here, so that `--help` imports nothing else for it."""


class StoreError(Exception):
    """The store cannot be used. The message is one line with the remedy."""
