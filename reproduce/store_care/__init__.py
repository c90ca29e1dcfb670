"""Care of stores: checking, merging, exporting and importing them, and training a sample of a store again."""
