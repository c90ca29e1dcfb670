"""The error of a store. Nothing else is imported for it, so that `--help` does not wait."""


class StoreError(Exception):
    """The store cannot be used. The message is one line with the remedy."""
