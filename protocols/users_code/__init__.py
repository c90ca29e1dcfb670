"""Code that users bring: losses, metrics and trunks of their own files."""
