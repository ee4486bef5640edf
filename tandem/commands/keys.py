"""`tandem keys add|list|revoke`: who may use the service when KEYS_REQUIRED is on."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing

from tandem.core.settings import load_settings
from tandem.services.keys import KeyInfo, KeyStore

_HEADINGS = ("NAME", "KEY", "REQUESTS/MIN", "CHARACTERS THIS MONTH", "REQUESTS", "CREATED", "LAST USED", "STATE")


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add this command's arguments."""
    parser = commands.add_parser("keys", help="make, show and revoke API keys")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    add = actions.add_parser("add", help="make a key and show it, this once")
    add.add_argument("name", help="who it is for")
    add.add_argument("--requests-per-minute", type=_positive, metavar="N", help="most requests; no limit by default")
    add.add_argument("--characters", type=_positive, metavar="N", help="most characters a month; no limit by default")
    add.set_defaults(run=run_add)
    actions.add_parser("list", help="show all keys and their use").set_defaults(run=run_list)
    revoke = actions.add_parser("revoke", help="refuse a key from now on")
    revoke.add_argument("name", help="who it was for")
    revoke.set_defaults(run=run_revoke)


def run_add(arguments: argparse.Namespace) -> int:
    """Make a key; it alone goes to standard output.

    Raises:
        TandemError: The name is taken, or the database cannot be written.
    """
    settings = load_settings()
    with closing(KeyStore(settings.keys_db)) as store:
        print(store.add(arguments.name, arguments.requests_per_minute, arguments.characters))
    print("Keep it: it cannot be shown again.", file=sys.stderr)
    if not settings.keys_required:
        print("The service asks for keys only with KEYS_REQUIRED=true.", file=sys.stderr)
    return 0


def run_list(_: argparse.Namespace) -> int:
    """Show all keys.

    Raises:
        TandemError: The database cannot be read.
    """
    with closing(KeyStore(load_settings().keys_db)) as store:
        rows = [_HEADINGS, *map(_render, store.describe())]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    return 0


def run_revoke(arguments: argparse.Namespace) -> int:
    """Refuse a key from now on.

    Raises:
        TandemError: The database cannot be written.
    """
    with closing(KeyStore(load_settings().keys_db)) as store:
        is_found = store.revoke(arguments.name)
    if not is_found:
        print(f"tandem: there is no key for {arguments.name} in use", file=sys.stderr)
    return 0 if is_found else 1


def _positive(value: str) -> int:
    number = int(value)
    if number <= 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return number


def _render(key: KeyInfo) -> tuple[str, ...]:
    return (
        key.name,
        f"{key.hint}…",
        "no limit" if key.requests_per_minute is None else str(key.requests_per_minute),
        f"{key.usage.characters} of {'any' if key.usage.limit is None else key.usage.limit}",
        str(key.requests),
        f"{key.created:%Y-%m-%d}",
        f"{key.used:%Y-%m-%d %H:%M}" if key.used else "never",
        "revoked" if key.is_revoked else "in use",
    )
