"""Shows the progress of a run: bars, lines in a log, the time left."""
