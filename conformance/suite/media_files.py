"""Files for the rules about fetching: what may be read, and what lies around it."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from conformance.engine import Engine
from conformance.suite.media_fetches import BODY, Fetch
from conformance.world.internet import Internet


@contextmanager
def folders() -> Iterator[Path]:
    """A folder with a `media` folder in it, from which files may be taken, and secrets around it."""
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        for folder in ("media/deep", "media-private", "elsewhere"):
            (root / folder).mkdir(parents=True)
        for file in ("media/cat", "media/deep/cat", "media/a cat"):
            (root / file).write_bytes(BODY)
        for file in ("secret", "media-private/secret", "elsewhere/secret"):
            (root / file).write_bytes(b"secret")
        (root / "media/empty").write_bytes(b"")
        (root / "media/link").symlink_to(root / "secret")
        (root / "media/way-out").symlink_to(root / "elsewhere")
        (root / "media/inner-link").symlink_to(root / "media/deep/cat")
        (root / "media/ring").symlink_to(root / "media/ring")
        yield root


def take(engine: Engine, reference: str, root: Path, **limits: Any) -> bytes:
    """What the engine makes of a reference to a file; `{root}` in it stands for the folder."""
    allowed = {"schemes": ("file",), "folders": (str(root / "media"),), **limits}
    return Fetch(reference.format(root=root), limits=allowed).by(engine, Internet())


FILES = {
    "path": "{root}/media/cat",
    "url": "file://{root}/media/cat",
    "deeper": "{root}/media/deep/cat",
    "there-and-back": "{root}/media/deep/../cat",
    "link-that-stays-inside": "{root}/media/inner-link",
    "percent-encoded": "file://{root}/media/a%20cat",
}
OUTSIDE = {
    "next-to-it": "{root}/secret",
    "up": "{root}/media/../secret",
    "up-in-a-url": "file://{root}/media/../secret",
    "up-percent-encoded": "file://{root}/media/%2e%2e/secret",
    "longer-name": "{root}/media-private/secret",
    "link": "{root}/media/link",
    "folder-that-is-a-link": "{root}/media/way-out/secret",
    "ring-of-links": "{root}/media/ring",
    "folder": "{root}/media/deep",
    "the-folder-itself": "{root}/media",
    "not-there": "{root}/media/dog",
    "empty": "{root}/media/empty",
    "zero-byte": "{root}/media/cat\0",
    "url-with-a-host": "file://inside.example{root}/media/cat",
    "relative": "media/cat",
    "device": "/dev/zero",
}
