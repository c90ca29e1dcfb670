"""How an experiment is carried out."""
