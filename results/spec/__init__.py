"""What decides a training or an experiment."""
