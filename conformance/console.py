"""Where the command line writes, and how it refuses."""

import difflib
import os
import sys
from collections.abc import Iterable
from typing import NoReturn

import typer
from rich.console import Console

USAGE = 2
"""The exit status of a call that cannot be served."""

PAGE = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 120
"""The width of what is written to a file or a pipe; a terminal, or whoever sets COLUMNS, has its own."""

out, err = Console(emoji=False, width=PAGE), Console(emoji=False, width=PAGE, stderr=True)


def refuse(sentence: str) -> NoReturn:
    """Say why a call cannot be served, and leave."""
    err.print(f"mmproof: {sentence}", style="red", markup=False, highlight=False)
    raise typer.Exit(USAGE)


def unknown(name: str, known: Iterable[str], kind: str) -> str:
    """The sentence about a name that nobody has."""
    near = difflib.get_close_matches(name, list(known), n=3)
    return f"there is no {kind} {name!r}; " + (f"did you mean {', '.join(near)}?" if near else "see `mmproof list`")
