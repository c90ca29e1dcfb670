"""Images on disk as one memory map, and the crops taken from them."""
