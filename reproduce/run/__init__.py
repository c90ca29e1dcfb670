"""Runs experiments: opens them, schedules their trainings and tests, and sends these to processes or a cluster."""
