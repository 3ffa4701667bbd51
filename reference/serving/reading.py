"""Reading: the tokenizer's process. Text and media become a request, and go to whoever computes it.

Everything about media that may fail fails here, before any rank knows of the request, and fails that request alone. What
media may be read is said by the server's policy (`reference.media`): data URIs, and files of its folders.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from PIL import Image

from reference.items import Request
from reference.media.decoding import decode_image
from reference.media.fetching import fetch_media
from reference.media.policy import FetchPolicy
from reference.pipeline import read
from reference.serving.features import Sender
from reference.serving.post import Message, Post
from reference.transport.wire import encode_message


def policy_of(folders: Sequence[str]) -> FetchPolicy:
    """Data URIs, and files inside these folders."""
    return FetchPolicy(schemes=("data", "file") if folders else ("data",), folders=tuple(folders))


def read_request(processor: Any, id: str, text: str, images: Sequence[str], policy: FetchPolicy) -> Request:
    """A request: pictures decoded, text tokenised and expanded, items identified, ids padded.

    text: with the processor's placeholder once for each image. Raises MediaError and ValueError.
    """
    pictures = [Image.fromarray(decode_image(fetch_media(image, policy))) for image in images]
    return replace(read(processor, text, pictures), id=id)


def serve(post: Post, processor: Any, folders: Sequence[str], receivers: Sequence[str], bare: Sequence[str]) -> None:
    """Read requests until told to stop.

    receivers: who gets requests with their tensors, the first of them through a channel. bare: who gets them without, since
    rows or results will come from elsewhere.
    """
    policy, sender = policy_of(folders), Sender()
    post.send(receivers[0], "channel", {"invitation": sender.invitation()})
    try:
        while (message := post.receive(1.0)) is None or message["kind"] != "stop":
            if message is not None and message["kind"] == "read":
                _forward(post, processor, policy, sender, message, receivers, bare)
            elif message is not None and message["kind"] == "abort":
                for name in (*bare, *receivers):
                    post.send(name, "abort", {"id": message["id"]})
    finally:
        sender.close()


def _forward(
    post: Post,
    processor: Any,
    policy: FetchPolicy,
    sender: Sender,
    message: Message,
    receivers: Sequence[str],
    bare: Sequence[str],
) -> None:
    id = str(message.get("id"))
    try:
        request = read_request(processor, id, message["text"], message["images"], policy)
        told = {"id": id, "room": message["room"], "limit": message["limit"]}
        stripped = encode_message(replace(request, items=tuple(replace(one, feature=None) for one in request.items)))
        whole = encode_message(sender.pack(request))
    except Exception as error:  # whatever it is, it is about this request alone
        post.send("service", "failed", {"id": id, "error": f"{type(error).__name__}: {error}"})
        return
    for name in bare:
        post.send(name, "request", {**told, "request": stripped})
    for name in receivers:
        post.send(name, "request", {**told, "request": whole})
