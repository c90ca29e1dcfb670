"""Published tables beside our own runs."""
