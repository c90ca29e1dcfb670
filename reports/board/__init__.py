"""Boards: several experiments on several datasets, as a table and as a page."""
