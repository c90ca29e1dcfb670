"""`python -m reproduce` and the command `reproduce`."""

from reproduce import interrupts


def main() -> None:
    """Run the command line. The handler of Ctrl-C comes before the imports, which take seconds."""
    interrupts.install()
    from reproduce.cli import main as run_command

    interrupts.imports_done()
    run_command()


if __name__ == "__main__":
    main()
