"""The HTML page of an experiment."""
