"""The published numbers: CSV files and their readers side by side."""
