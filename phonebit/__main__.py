"""The entry point of ``phonebit`` and ``python -m phonebit``."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while it is imported ends like Ctrl-C in a command."""
    try:
        from phonebit.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.stderr.write("error: interrupted\n")
        sys.exit(130)  # as phonebit.cli.console says, which is not imported yet


if __name__ == "__main__":
    main()
