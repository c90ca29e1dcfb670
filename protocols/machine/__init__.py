"""What the machine does for a training: processes, and torch's settings."""
