"""Mutations of `processors`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "nothing is left of the text around a medium",
        "processors/__init__",
        "return ids[1:-1], made",
        "return ids, made",
        "PROCESSORS-01",
    ),
    Mutation(
        "a typed placeholder is text",
        "processors/__init__",
        "{*(token for token in stated if token is not None), *tokenizer.convert_ids_to_tokens(filled)}",
        "set()",
        "PROCESSORS-06",
    ),
    Mutation(
        "spans count from the start of the prompt", "processors/__init__", "length += len(ids)", "length += 0", "PROCESSORS-02"
    ),
    Mutation(
        "numbers that do not agree are an error",
        "processors/family",
        "if len(places) != sum(counts):",
        "if False:",
        "PROCESSORS-16",
    ),
    Mutation(
        "a picture of a bundle loses its padding",
        "processors/tiles",
        "[number : number + 1, :, :height, :width]",
        "[number : number + 1]",
        "PROCESSORS-10",
    ),
    Mutation(
        "what fills the places of Gemma 3 is not its marker",
        "processors/tiles",
        "processor.tokenizer.image_token_id",
        "processor.image_token_id",
        "PROCESSORS-02",
    ),
    Mutation(
        "a frame of InternVL has the tokens of one tile",
        "processors/tiles",
        "len(rows) * processor.image_seq_length, len(rows), rows",
        "len(rows), 1, rows",
        "PROCESSORS-01",
    ),
    Mutation(
        "frames of SmolVLM are one video",
        "processors/tiles",
        'if name != "video" or "pixel_values" not in output',
        "if True",
        "PROCESSORS-02",
    ),
    Mutation(
        "a failed module says why",
        "processors/registry",
        "could not be imported: {cause}",
        "could not be imported",
        "PROCESSORS-24",
    ),
    Mutation("tiles of a picture stay together", "processors/llava", "return 1 + int(", "return int(", "PROCESSORS-10"),
]
