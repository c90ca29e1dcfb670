"""Executors that send trainings to other machines."""
