"""Networks that turn an image into features."""
