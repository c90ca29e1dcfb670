"""An experiment's page."""
