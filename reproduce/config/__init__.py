"""Experiment files and method cards."""
