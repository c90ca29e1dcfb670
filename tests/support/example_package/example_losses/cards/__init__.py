"""Method cards of the example."""
