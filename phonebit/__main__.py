"""``python -m phonebit``: the command line."""

from phonebit.cli.main import main

main()
