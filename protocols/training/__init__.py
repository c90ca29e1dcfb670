"""The training of one fold."""
