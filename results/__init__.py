"""Measured and published results: records, the store, statistics and published numbers. Imports no torch."""
