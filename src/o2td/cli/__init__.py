"""The command line: :mod:`o2td.cli.main` finds a command, one module a command runs it."""
