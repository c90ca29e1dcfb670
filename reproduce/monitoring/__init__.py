"""What a person sees while an experiment runs."""
