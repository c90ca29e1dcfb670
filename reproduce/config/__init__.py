"""Reads and checks experiment files and method cards."""
