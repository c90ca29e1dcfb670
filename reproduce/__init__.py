"""The command line, experiment files, method cards, planning and executors."""
