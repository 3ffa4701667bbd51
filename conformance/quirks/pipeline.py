"""Ways in which engines have got the path from photos to logits wrong. Each leaves the right path at one place."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from PIL import Image

from conformance.protocol.pipeline import Prefill
from conformance.quirk import quirk
from conformance.world.checkpoint import Checkpoint
from reference import pipeline as right
from reference.encoder_cache import EncoderCache
from reference.encoding import count_in_chunk
from reference.items import Chunk, Request, all_spans
from reference.merging import merge, span_mask

Images = Sequence[Image.Image]
Feed = Callable[[Request, Chunk, EncoderCache], torch.Tensor]


@torch.no_grad()
def serve(
    checkpoint: Checkpoint,
    request: Request,
    length: int | None,
    feed: Feed | None = None,
    positions: torch.Tensor | None = None,
) -> Prefill:
    """The right path from a request on, but for another way to feed a chunk, or other positions."""
    model, cache = checkpoint.model, EncoderCache(1 << 26)
    chunks = right.cut(request, length)
    fed = [feed(request, chunk, cache) if feed else right.feed(model, request, chunk, cache) for chunk in chunks]
    places = right.mrope_positions(model, request) if positions is None else positions
    return Prefill(request.input_ids, torch.cat(fed), right.answer(model, fed, places))


def serve_rows(checkpoint: Checkpoint, request: Request, length: int | None, rows: torch.Tensor) -> Prefill:
    """The right path, but for the rows [positions of media, hidden] of the whole prompt."""
    spans, table = all_spans(request.items), checkpoint.model.get_input_embeddings().weight

    def feed(request: Request, chunk: Chunk, cache: EncoderCache) -> torch.Tensor:
        before = count_in_chunk(spans, Chunk(0, chunk.prefix))
        here = rows[before : before + count_in_chunk(spans, chunk)]
        return merge(request.input_ids[chunk.prefix : chunk.stop], request.items, here, table, chunk)

    return serve(checkpoint, request, length, feed)


def encoded(checkpoint: Checkpoint, request: Request) -> list[torch.Tensor]:
    """The rows of each picture."""
    with torch.no_grad():
        return [right.vision_rows(checkpoint.model, item) for item in request.items]


@quirk(
    "red-and-blue-swapped",
    replaces="prefill",
    bugs=(),
    caught_by=("PIPELINE-01", "PIPELINE-02", "PIPELINE-03", "PIPELINE-04"),
)
def bgr(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Pictures are decoded by a library whose channels come in the order blue, green, red."""
    turned = [Image.merge("RGB", image.convert("RGB").split()[::-1]) for image in images]
    return serve(checkpoint, right.read(checkpoint.processor, prompt, turned), chunk_length)


@quirk(
    "last-picture-for-all",
    replaces="prefill",
    bugs=("Q03",),
    caught_by=(
        "PIPELINE-01",
        "PIPELINE-02",
        "PIPELINE-03",
        "PIPELINE-04",
        "PIPELINE-05",
        "PIPELINE-06",
        "PIPELINE-07",
        "PIPELINE-08",
    ),
)
def last_for_all(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Every picture of a prompt is the last one: the loop's variable was used in place of the list."""
    return serve(checkpoint, right.read(checkpoint.processor, prompt, list(images[-1:]) * len(images)), chunk_length)


@quirk(
    "rows-in-another-order",
    replaces="prefill",
    bugs=("Q01", "Q02"),
    caught_by=("PIPELINE-01", "PIPELINE-02", "PIPELINE-03", "PIPELINE-04", "PIPELINE-05"),
)
def reversed_rows(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Rows come in the order in which pictures were encoded, here the last first; their total is right."""
    request = right.read(checkpoint.processor, prompt, images)
    rows = encoded(checkpoint, request)[::-1]
    return serve_rows(checkpoint, request, chunk_length, torch.cat(rows)) if rows else serve(checkpoint, request, chunk_length)


@quirk(
    "first-picture-only",
    replaces="prefill",
    bugs=("mlx-gemma3-where-instead-of-scatter",),
    caught_by=("PIPELINE-01", "PIPELINE-02", "PIPELINE-03", "PIPELINE-04", "PIPELINE-05", "PIPELINE-06"),
)
def first_only(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The first picture's rows, repeated as often as it takes, fill the places of all pictures."""
    request = right.read(checkpoint.processor, prompt, images)
    if not images:
        return serve(checkpoint, request, chunk_length)
    first, total = encoded(checkpoint, request)[0], sum(item.token_count for item in request.items)
    return serve_rows(checkpoint, request, chunk_length, first.repeat(-(-total // len(first)), 1)[:total])


@quirk(
    "pictures-without-rows",
    replaces="prefill",
    bugs=("D02", "XL1"),
    caught_by=("PIPELINE-01", "PIPELINE-02", "PIPELINE-03", "PIPELINE-04", "PIPELINE-05"),
)
def zeros(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The rows of pictures were lost on the way: their places are zeros, and the model answers as to text."""
    request = right.read(checkpoint.processor, prompt, images)
    hidden = checkpoint.model.get_input_embeddings().weight.shape[1]
    return serve_rows(checkpoint, request, chunk_length, torch.zeros(sum(item.token_count for item in request.items), hidden))


@quirk(
    "rows-keyed-by-their-number",
    replaces="prefill",
    bugs=("E02",),
    caught_by=("PIPELINE-01", "PIPELINE-02", "PIPELINE-03", "PIPELINE-04", "PIPELINE-05", "PIPELINE-06"),
)
def keyed_by_count(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The encoder cache tells pictures apart by their number of tokens alone."""
    request = right.read(checkpoint.processor, prompt, images)
    items = tuple(replace(item, identity=item.token_count.to_bytes(32, "big")) for item in request.items)
    return serve(checkpoint, replace(request, items=items), chunk_length)


@quirk(
    "chunk-begins-at-row-zero",
    replaces="prefill",
    bugs=("chunked-prefill-old-merge-shape",),
    caught_by=("PIPELINE-02", "PIPELINE-04"),
)
def restarted(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Each chunk takes the rows of a picture from the first one on, whatever was done before."""
    request = right.read(checkpoint.processor, prompt, images)
    table = checkpoint.model.get_input_embeddings().weight

    def feed(request: Request, chunk: Chunk, cache: EncoderCache) -> torch.Tensor:
        counts = [count_in_chunk(item.spans, chunk) for item in request.items]
        rows = [whole[:count] for whole, count in zip(encoded(checkpoint, request), counts, strict=True)]
        here = torch.cat([table[:0], *rows])
        return merge(request.input_ids[chunk.prefix : chunk.stop], request.items, here, table, chunk)

    return serve(checkpoint, request, chunk_length, feed)


@quirk("chunk-without-media-fails", replaces="prefill", bugs=("Z04",), caught_by=("PIPELINE-02", "PIPELINE-04", "PIPELINE-10"))
def absent_and_empty(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """A chunk of a request with pictures that happens to hold none is taken for one whose embeddings were lost."""
    request = right.read(checkpoint.processor, prompt, images)
    for chunk in right.cut(request, chunk_length):
        if request.items and not count_in_chunk(all_spans(request.items), chunk):
            raise RuntimeError("the embeddings of the pictures are missing")
    return serve(checkpoint, request, chunk_length)


@quirk("positions-of-text", replaces="prefill", bugs=("R03", "D02"), caught_by=("PIPELINE-03", "PIPELINE-04"))
def text_positions(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The grids of pictures do not reach the positions, which count up as in text."""
    request = right.read(checkpoint.processor, prompt, images)
    return serve(checkpoint, request, chunk_length, None, torch.arange(len(request.input_ids)).expand(3, 1, -1))


@quirk(
    "positions-restart-in-each-chunk",
    replaces="prefill",
    bugs=("mlx-mrope-chunk-offset-delta", "R08"),
    caught_by=("PIPELINE-04",),
)
def restarted_positions(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Each chunk takes the first positions of the prompt in place of its own."""
    request = right.read(checkpoint.processor, prompt, images)
    whole = right.mrope_positions(checkpoint.model, request)
    chunks = right.cut(request, chunk_length)
    return serve(checkpoint, request, chunk_length, None, torch.cat([whole[..., : chunk.length] for chunk in chunks], dim=2))


@quirk("ids-left-as-placeholders", replaces="prefill", bugs=("H07", "prefix-image-blind"), caught_by=("PIPELINE-07",))
def unpadded(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The prefix cache is keyed with placeholder ids, the same for every picture."""
    request = right.read(checkpoint.processor, prompt, images)
    served = serve(checkpoint, request, chunk_length)
    media = span_mask(all_spans(request.items), Chunk(0, len(request.input_ids)))
    return replace(served, input_ids=np.where(media, checkpoint.processor.image_token_id, request.input_ids))


@quirk("padding-ends-one-too-late", replaces="prefill", bugs=(), caught_by=("PIPELINE-07", "PIPELINE-08"))
def one_too_far(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """An inclusive end was read as exclusive: the last sentinel also covers the token behind the picture."""
    request = right.read(checkpoint.processor, prompt, images)
    ids = request.input_ids.copy()
    for span in all_spans(request.items):
        ids[span.stop : span.stop + 1] = ids[span.last]
    return replace(serve(checkpoint, request, chunk_length), input_ids=ids)


@quirk(
    "tokenised-again",
    replaces="prefill",
    bugs=("O07",),
    caught_by=(
        "PIPELINE-01",
        "PIPELINE-02",
        "PIPELINE-03",
        "PIPELINE-04",
        "PIPELINE-05",
        "PIPELINE-06",
        "PIPELINE-07",
        "PIPELINE-08",
    ),
)
def retokenised(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The text around pictures is decoded, without the white space at its ends, and tokenised a second time."""
    tokenizer = checkpoint.processor.tokenizer
    ids = [tokenizer(piece)["input_ids"] for piece in prompt.split(checkpoint.placeholder)]
    again = [tokenizer.decode(piece).strip() for piece in ids]
    return serve(checkpoint, right.read(checkpoint.processor, checkpoint.placeholder.join(again), images), chunk_length)


@quirk("surplus-is-dropped", replaces="prefill", bugs=("REG3",), caught_by=("PIPELINE-09", "PIPELINE-11"))
def dropped(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Placeholders that have no picture, and pictures that have no placeholder, are dropped without a word."""
    token = checkpoint.processor.image_token
    first, *others = prompt.split(token)
    kept = min(len(others), len(images))
    text = token.join([first, *others[:kept]]) + "".join(others[kept:])
    return serve(checkpoint, right.read(checkpoint.processor, text, images[:kept]), chunk_length)


@quirk("runs-out-of-pictures", replaces="prefill", bugs=("O01",), caught_by=("PIPELINE-09", "PIPELINE-11"))
def exhausted(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Each placeholder takes the next picture, and nobody asks whether there is one."""
    remaining = iter(images)
    taken = [next(remaining) for _ in range(prompt.count(checkpoint.processor.image_token))]
    return serve(checkpoint, right.read(checkpoint.processor, prompt, taken), chunk_length)


@quirk("first-token-takes-the-picture", replaces="prefill", bugs=("O02", "O03"), caught_by=("PIPELINE-09", "PIPELINE-11"))
def earliest(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """Pictures go to the first placeholder tokens, whoever wrote them; those that are left over stay as they are."""
    processor = checkpoint.processor
    pieces = prompt.split(processor.image_token)
    spare = processor.tokenizer.convert_tokens_to_ids("<|quad_end|>")
    text = processor.image_token.join(pieces[: len(images) + 1])
    request = right.read(processor, "<|quad_end|>".join([text, *pieces[len(images) + 1 :]]), images)
    ids = np.where(request.input_ids == spare, processor.image_token_id, request.input_ids)
    return serve(checkpoint, replace(request, input_ids=ids), chunk_length)


_before: list[tuple[object, Prefill]] = []


@quirk(
    "answered-from-the-request-before",
    replaces="prefill",
    bugs=("Q06", "prefix-image-blind"),
    caught_by=("PIPELINE-05", "PIPELINE-06", "PIPELINE-07"),
)
def stale(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """A request whose text is that of the request before it gets what that one got, whatever its pictures."""
    if not _before or _before[0][0] != (prompt, chunk_length):
        served = serve(checkpoint, right.read(checkpoint.processor, prompt, images), chunk_length)
        _before[:] = [((prompt, chunk_length), served)]
    return _before[0][1]


_seen: list[object] = []


@quirk("rows-only-once", replaces="prefill", bugs=("Z03",), caught_by=("PIPELINE-10",))
def only_once(checkpoint: Checkpoint, prompt: str, images: Images, chunk_length: int | None) -> Prefill:
    """The second time a request comes its rows are held to be cached, and its pictures are fed as zeros."""
    request = (prompt, [image.tobytes() for image in images], chunk_length)
    again, _seen[:] = _seen == [request], [request]
    if again:
        return zeros(checkpoint, prompt, images, chunk_length)
    return serve(checkpoint, right.read(checkpoint.processor, prompt, images), chunk_length)
