"""The parts of an experiment's page."""
