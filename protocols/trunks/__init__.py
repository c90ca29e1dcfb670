"""The trunks, which map images to feature maps, and the embedding model on top of a trunk."""
