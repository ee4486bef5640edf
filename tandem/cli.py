"""The command line: one module of `tandem.commands` for each command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tandem.commands import keys, translate_file
from tandem.core.errors import TandemError

COMMANDS = (translate_file, keys)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Of the command line; the process's own by default.

    Returns:
        The exit status: 0, or 1 when the command could not do what it should.
    """
    parsed = build_parser().parse_args(arguments)
    try:
        status: int = parsed.run(parsed)
    except TandemError as error:
        print(f"tandem: {error}", file=sys.stderr)
        return 1
    return status


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each sets `run`, which takes the parsed arguments and returns the status."""
    parser = argparse.ArgumentParser(prog="tandem", description="Chinese translation and embeddings on your machine.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        command.add_parser(commands)
    return parser
