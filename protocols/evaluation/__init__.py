"""The test of trained models. No other package uses test classes."""
