"""The command `mmproof`.

The five rooms of the project have plain names. Before anything is imported from them, this module makes sure that they
are the project's own: another package of the same name, installed or in the working directory, would be run instead.
"""

import sys
from importlib.util import find_spec
from pathlib import Path

ROOMS = ("reference", "conformance", "golden", "fuzz", "perf")


def hidden_rooms(home: Path) -> dict[str, str]:
    """The rooms that are not imported from `home`, and what is imported instead."""
    found = {room: find_spec(room) for room in ROOMS}
    places = {
        room: list(spec.submodule_search_locations or [spec.origin or ""]) if spec else [] for room, spec in found.items()
    }
    return {room: ", ".join(place) for room, place in places.items() if not any(Path(p) == home / room for p in place)}


def main() -> None:
    """Run the command line, unless a room is hidden."""
    if hidden := hidden_rooms(Path(__file__).resolve().parent):
        for room, instead in hidden.items():
            print(f"mmproof: its package {room!r} is hidden by {instead or 'nothing: it is missing'}", file=sys.stderr)
        print("mmproof: install mmproof into an environment of its own, or move what hides it", file=sys.stderr)
        sys.exit(2)
    from conformance.cli import app

    app()


if __name__ == "__main__":
    main()
