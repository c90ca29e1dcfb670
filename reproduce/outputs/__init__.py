"""Makes tables, pages and exports from a store."""
