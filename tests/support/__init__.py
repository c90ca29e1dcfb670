"""What tests share: made-up records, small problems, a command line, reference values."""
