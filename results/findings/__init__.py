"""Findings about an experiment: what a reader must know beside its answer."""
