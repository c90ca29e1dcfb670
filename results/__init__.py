"""What was measured: records, the store, statistics and the published numbers. Imports no torch."""
