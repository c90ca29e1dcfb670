"""The result figures of the papers, drawn from the runs in a store."""
