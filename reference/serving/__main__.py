"""A server on standard input and output: one JSON object a line each.

    {"id": "1", "text": "What is <|vision_start|><|image_pad|><|vision_end|>?", "images": ["/media/cat.png"], "limit": 8}
    {"id": "1", "tokens": [12, 7]}
    {"id": "2", "error": "MediaError: files outside the allowed folders are not taken"}

`text` has the model's own placeholder once for each image; an image is a data URI, or a path inside a `--media` folder.
{"abort": "1"} ends a request without an answer. Answers come as they are ready. At the end of the input all answers are
given, and everything stops.

Exit status: 0, 1 when a process was lost, 2 for a wrong call, 128 and its number when a signal has ended it.
"""

import argparse
import json
import os
import select
import signal
import sys
from typing import Any

from reference.serving.nursery import Nursery
from reference.serving.service import Layout, RequestFailed, Service

LONGEST_LINE_BYTES = 1 << 27
TICK_S = 0.05


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m reference.serving", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkpoint", required=True, help="package.module:function that makes processor and model")
    parser.add_argument("--tp", type=int, default=1, help="how many ranks share the language model")
    parser.add_argument("--disaggregated", action="store_true", help="encoder, prefill and decode are processes of their own")
    parser.add_argument("--chunk-length", type=int, help="the most positions of a prompt in one step")
    parser.add_argument("--media", action="append", default=[], metavar="FOLDER", help="images may be files in here")
    options = parser.parse_args()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        media = tuple(map(os.path.abspath, options.media))
        layout = Layout(tp=options.tp, disaggregated=options.disaggregated, chunk_length=options.chunk_length, media=media)
        nursery = Nursery(options.checkpoint)
    except (ValueError, RuntimeError) as error:
        parser.error(str(error))
    try:
        service = Service(nursery, layout)
        try:
            return serve(service)
        finally:
            service.close()
    finally:
        nursery.close()


def serve(service: Service) -> int:
    """Answer lines until there are no more, and everything is answered."""
    buffer, is_open, waiting = b"", True, set[str]()
    while is_open or waiting:
        if is_open and select.select([0], [], [], 0 if waiting else TICK_S)[0]:
            data = os.read(0, 1 << 20)
            is_open = bool(data) and len(buffer) < LONGEST_LINE_BYTES
            *lines, buffer = (buffer + data).split(b"\n")
            for line in filter(None, lines):
                take(service, line, waiting)
        for id, outcome in service.poll(TICK_S if waiting else 0).items():
            waiting.discard(id)
            say({"id": id, "error": str(outcome)} if isinstance(outcome, Exception) else {"id": id, "tokens": outcome})
        if service.lost and not waiting:
            print(service.lost, file=sys.stderr)
            return 1
    return 0


def take(service: Service, line: bytes, waiting: set[str]) -> None:
    """Do what a line asks, or say what is wrong with it."""
    id = None
    try:
        asked = json.loads(line)
        if isinstance(asked, dict) and "abort" in asked:
            service.abort(asked["abort"])
            waiting.discard(asked["abort"])
            return
        id, text, images, limit = read(asked)
        service.submit(id, text, images, limit)
        waiting.add(id)
    except (ValueError, RecursionError, RequestFailed) as error:
        say({"id": id, "error": f"{type(error).__name__}: {error}"})


def read(asked: Any) -> tuple[str, str, list[str], int]:
    """What a request asks for. Raises ValueError for anything but text, paths and a number."""
    known = {"id", "text", "images", "limit"}
    if not isinstance(asked, dict) or not {"id", "text"} <= asked.keys() <= known:
        raise ValueError("a request has an id and a text, and may have images and a limit")
    images, limit = asked.get("images", []), asked.get("limit", 16)
    if not isinstance(asked["id"], str) or not isinstance(asked["text"], str) or type(limit) is not int:
        raise ValueError("id and text are text, and limit is a number")
    if not isinstance(images, list) or not all(isinstance(one, str) for one in images):
        raise ValueError("images are data URIs or paths")
    return asked["id"], asked["text"], images, limit


def say(answer: dict[str, Any]) -> None:
    """One line of output."""
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    sys.exit(main())
