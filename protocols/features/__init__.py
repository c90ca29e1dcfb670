"""Features instead of images: those of a frozen trunk, or those of a file that somebody brings."""
