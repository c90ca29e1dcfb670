"""From what a store knows of an experiment to what stands on its page."""
