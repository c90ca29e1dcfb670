"""What a person looks at: tables, figures and the page. Imports `results` only."""
