"""What is made from a store: tables, pages, exports."""
