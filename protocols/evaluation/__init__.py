"""The test of trained models: the only package where test classes enter."""
