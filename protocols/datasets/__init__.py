"""Datasets: where their images lie, their classes, their official layouts."""
