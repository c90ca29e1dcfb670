"""What a person looks at: tables. Imports `results` only."""
