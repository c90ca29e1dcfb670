"""Intervals, tests and effect sizes over runs and over test classes."""
