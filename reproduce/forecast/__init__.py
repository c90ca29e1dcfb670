"""How long the work takes."""
