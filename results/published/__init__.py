"""What papers printed: the numbers as CSV files and their readers side by side."""
