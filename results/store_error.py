"""The error of the store, in a module without imports: the command line catches it and starts without SQLAlchemy."""


class StoreError(Exception):
    """The store cannot be used. The message gives the remedy."""
