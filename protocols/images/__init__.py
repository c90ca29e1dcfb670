"""Packed images in one memory map, and crops of them."""
