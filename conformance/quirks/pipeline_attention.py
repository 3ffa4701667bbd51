"""Ways in which engines have let positions of media see what they must not."""

from collections.abc import Sequence

import torch
from PIL import Image

from conformance.protocol.pipeline import Prefill
from conformance.quirk import quirk
from conformance.world.checkpoint import Checkpoint
from reference import pipeline as right
from reference.encoder_cache import EncoderCache


@quirk(
    "mask-by-time",
    replaces="prefill",
    bugs=("llamacpp-causal-mask-mrope",),
    caught_by=("PIPELINE-03", "PIPELINE-04"),
)
@torch.no_grad()
def by_time(checkpoint: Checkpoint, prompt: str, images: Sequence[Image.Image], chunk_length: int | None) -> Prefill:
    """Who may see whom is told by the time of their positions: all of a picture that is in the same step sees itself whole."""
    model, cache, request = checkpoint.model, EncoderCache(1 << 26), right.read(checkpoint.processor, prompt, images)
    chunks = right.cut(request, chunk_length)
    fed = [right.feed(model, request, chunk, cache) for chunk in chunks]
    places, logits, kept = right.mrope_positions(model, request), [], None
    for chunk, step in zip(chunks, fed, strict=True):
        here, seen = places[0, 0, chunk.prefix : chunk.stop], places[0, 0, : chunk.stop]
        mask = torch.zeros(len(here), len(seen)).masked_fill(seen[None] > here[:, None], float("-inf"))[None, None]
        said = model.model.language_model(
            inputs_embeds=step[None],
            position_ids=places[..., chunk.prefix : chunk.stop],
            attention_mask=mask,
            cache=kept,
            use_cache=True,
        )
        logits.append(model.lm_head(said.last_hidden_state)[0])
        kept = said.cache
    return Prefill(request.input_ids, torch.cat(fed), torch.cat(logits))
