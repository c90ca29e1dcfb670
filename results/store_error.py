"""The errors of the store, in a module without imports: the command line catches them and starts without SQLAlchemy."""


class StoreError(Exception):
    """The store cannot be used. The message gives the remedy."""


class IncompleteExperimentError(StoreError):
    """An experiment was stored without something that every table needs. The message gives the remedy."""
