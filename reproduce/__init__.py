"""The front door: command line, experiment files, method cards, planning, executors."""
