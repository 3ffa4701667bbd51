"""Take one sentence's worth of behaviour out of the reference, and a requirement turns red.

Each mutation is an edit of one place in `reference`. A copy with that edit is put to the rule in a process of its own: the
fork of a server that has imported the rules, but no stage of the reference, so that it costs a moment and not seconds.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

HOME = Path(__file__).parent.parent

SERVER = """
import importlib, json, os, sys
from conformance import trial
from conformance.suite import requirements
from conformance.world.checkpoint import tiny_qwen2_vl
import reference.items
tiny_qwen2_vl()
assert not [name for name in sys.modules if name.startswith("reference.") and name != "reference.items"]

def verdicts(folder, id):
    reference.__path__ = [folder + "/reference"]
    engine = importlib.import_module("conformance.adapters.reference").ReferenceEngine()
    used = [module.__file__ for name, module in sys.modules.items() if name.startswith("reference.")]
    assert all(file.startswith(folder) for file in used if not file.endswith("items.py")), used
    one = requirements[id]
    return sorted({str(trial.run(one, case, engine).verdict) for case in one.cases.values()})

for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print(flush=True)
        continue
    try:
        print(json.dumps(verdicts(*json.loads(line))), end="", flush=True)
    except BaseException as error:
        print(json.dumps([f"{type(error).__name__}: {error}"]), end="", flush=True)
    os._exit(0)
"""

Try = Callable[[Path, str], list[str]]
"""A folder with a copy of the reference, and a requirement: how its cases end."""


@pytest.fixture(scope="module")
def attempt() -> Iterator[Try]:
    environment = {**os.environ, "PYTHONPATH": str(HOME), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-c", SERVER]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        ask, answers = server.stdin, server.stdout

        def one(folder: Path, id: str) -> list[str]:
            print(json.dumps([str(folder), id]), file=ask, flush=True)
            verdicts: list[str] = json.loads(answers.readline())
            return verdicts

        yield one
        ask.close()


class Mutation(NamedTuple):
    """What is lost, where, the text that goes and the text that comes, and the requirement that must notice."""

    loss: str
    stage: str
    old: str
    new: str
    caught_by: str


MUTATIONS = [
    Mutation("sentinels lie above every vocabulary", "sentinels", "(SHIFT + (word", "((word", "SENTINELS-06"),
    Mutation(
        "words of a digest are big-endian",
        "sentinels",
        '">u8"',
        '"<u8"',
        "SENTINELS-06",
    ),
    Mutation("a vocabulary of exactly the limit is taken", "sentinels", "if size > SHIFT", "if size >= SHIFT", "SENTINELS-09"),
    Mutation(
        "every span begins with the first sentinel",
        "sentinels",
        "[..., :length]",
        "[..., 4 * rounds - length :]",
        "PLACEHOLDERS-05",
    ),
    Mutation("the modality is part of the identity", "identity", "_number(item.modality), ", "", "IDENTITY-10"),
    Mutation("the shape is part of the identity", "identity", '",".join(map(str, shape)).encode(), ', "", "IDENTITY-06"),
    Mutation("the dtype is part of the identity", "identity", "dtype.encode(), ", "", "IDENTITY-07"),
    Mutation(
        "the fields are part of the identity",
        "identity",
        '_encode(dict(item.fields), "fields", metadata=True), ',
        "",
        "IDENTITY-12",
    ),
    Mutation("the order of fields is not", "identity", "*sorted(pairs)", "*pairs", "IDENTITY-13"),
    Mutation(
        "the palette is part of a picture", "identity", '_frame("picture", palette, ', '_frame("picture", ', "IDENTITY-14"
    ),
    Mutation(
        "a wrong number of caller hashes drops all",
        "identity",
        "    if problems:\n        return adopted, problems\n",
        "",
        "IDENTITY-25",
    ),
    Mutation(
        "a run at the edge of a prompt is found",
        "placeholders",
        "np.pad(_checked(input_ids) == token_id, 1)",
        "np.pad(_checked(input_ids) == token_id, (1, 0))",
        "PLACEHOLDERS-01",
    ),
    Mutation(
        "the caller's ids are copied",
        "placeholders",
        "padded = _checked(input_ids).copy()\n    spans = ",
        "padded = _checked(input_ids)\n    spans = ",
        "PLACEHOLDERS-03",
    ),
    Mutation(
        "spans must lie within the prompt",
        "placeholders",
        "spans = span_table(items, len(padded))",
        "spans = span_table([item for item in items if all(span.stop <= len(padded) for span in item.spans)], len(padded))",
        "PLACEHOLDERS-17",
    ),
    Mutation(
        "spans do not overlap",
        "placeholders",
        "    spans = span_table(items, len(padded))\n"
        "    _fill(padded, spans.firsts, spans.lengths, sentinel_table(items)[spans.owners])\n",
        "    for one in items:\n"
        "        spans = span_table([one], len(padded))\n"
        "        _fill(padded, spans.firsts, spans.lengths, sentinel_table([one])[spans.owners])\n",
        "PLACEHOLDERS-07",
    ),
    Mutation("the processor is part of the key", "preprocessing", "processor.encode()", 'b""', "PREPROCESSING-02"),
    Mutation("so are the options", "preprocessing", ", fields=mine)", ")", "PREPROCESSING-03"),
    Mutation(
        "but not those of other modalities",
        "preprocessing",
        "return options.get(modality, {})",
        "return {name.name: dict(values) for name, values in options.items()}",
        "PREPROCESSING-05",
    ),
    Mutation(
        "work is on what was submitted",
        "preprocessing",
        "feature=_copy(item.feature)",
        "feature=item.feature",
        "PREPROCESSING-13",
    ),
    Mutation(
        "no more waits than may", "preprocessing", "if len(self._runs) >= self._most_runs:", "if False:", "PREPROCESSING-09"
    ),
    Mutation(
        "who has left is not waited for",
        "preprocessing",
        "if not run.waiters and run.handle",
        "if run.handle",
        "PREPROCESSING-18",
    ),
    Mutation(
        "what nobody waits for does not begin",
        "preprocessing",
        "if not run.waiters and run.handle and run.handle.cancel():",
        "if False:",
        "PREPROCESSING-20",
    ),
    Mutation(
        "work from before a clear is not kept here either",
        "preprocessing",
        " and run.generation == self._generation",
        "",
        "PREPROCESSING-24",
    ),
    Mutation("nor joined", "preprocessing", "            self._shared.clear()\n", "", "PREPROCESSING-25"),
    Mutation("a failure is not kept", "preprocessing", "if error is None and size", "if size", "PREPROCESSING-26"),
    Mutation("a hit counts as a use", "preprocessing", "                self._kept.move_to_end(key)\n", "", "PREPROCESSING-31"),
    Mutation("a waiter has a copy of its own", "preprocessing", "own = _copy(result)", "own = result", "PREPROCESSING-35"),
    Mutation(
        "so has the cache",
        "preprocessing",
        "result = _copy(self._work(",
        "result = (lambda made: made)(self._work(",
        "PREPROCESSING-36",
    ),
    Mutation(
        "a hit has as many rows as the item has tokens",
        "encoder_cache",
        "entry.embedding.shape[0] != token_count",
        "entry.embedding.shape[0] < 0",
        "ENCODER_CACHE-02",
    ),
    Mutation(
        "a get makes an entry young", "encoder_cache", "            self._entries.move_to_end(key)\n", "", "ENCODER_CACHE-04"
    ),
    Mutation("a view is copied", "encoder_cache", "_Entry(_alone(embedding)", "_Entry(embedding", "ENCODER_CACHE-10"),
    Mutation(
        "work from before a clear is not kept", "encoder_cache", "generation == self._generation and ", "", "ENCODER_CACHE-13"
    ),
    Mutation(
        "an item outside the chunk is not encoded",
        "encoding",
        "(item for item in request.items if count_in_chunk(item.spans, chunk))",
        "(item for item in request.items)",
        "ENCODING-11",
    ),
    Mutation(
        "the token count tells two items apart",
        "encoding",
        "return item.modality, item.identity, item.token_count",
        "return item.modality, item.identity, 0",
        "ENCODING-10",
    ),
    Mutation("rows are dense", "encoding", "rows.layout is not torch.strided", "False", "ENCODING-29"),
    Mutation("no row is merged too few or too many", "merging", "if len(rows) != media.sum():", "if False:", "MERGING-06"),
    Mutation("no row of none is kept", "merging", "rows[len(rows) - count :]", "rows[-count:]", "MERGING-11"),
    Mutation("text has no deepstack rows", "merging", "table.new_zeros(levels", "table.new_ones(levels", "MERGING-15"),
    Mutation(
        "each picture is encoded by itself and has its own grid",
        "pipeline",
        'torch.tensor([item.read("image_grid_thw")])',
        'torch.tensor([item.read("image_grid_thw")])[:, [0, 2, 1]]',
        "PIPELINE-01",
    ),
    Mutation("a byte order is looked at", "media/audio", "    check_byte_order(data)\n", "", "MEDIA-66"),
    Mutation("pictures have positions of their own", "pipeline", "request.items, layout", "(), layout", "PIPELINE-03"),
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
    Mutation("a rate is the decimal that was written", "pruning", "Fraction(str(rate))", "Fraction(float(rate))", "PRUNING-02"),
    Mutation(
        "of equally unlike tokens the earlier one stays",
        "pruning",
        "torch.argsort(unlike, descending=True, stable=True)",
        "torch.argsort(unlike, stable=True).flip(0)",
        "PRUNING-08",
    ),
    Mutation("a kept token keeps its own position", "pruning", "] = part", "] = np.sort(part)[::-1]", "PRUNING-14"),
    Mutation(
        "the delta is that of the pruned prompt",
        "pruning",
        "int(kept.max()) + 1 - kept.shape[1]",
        "int(kept.max()) + 1 - positions.shape[1]",
        "PRUNING-17",
    ),
    Mutation(
        "text goes on behind the time of a video",
        "positions",
        "_next(blocks[shape]) - count",
        "_next(blocks[shape][1:]) - count",
        "POSITIONS-01",
    ),
    Mutation(
        "time is multiplied from left to right",
        "positions",
        "block[0].astype(np.float32) * seconds * rate",
        "block[0].astype(np.float32) * (seconds * rate)",
        "POSITIONS-13",
    ),
    Mutation(
        "frames that are apart have no time",
        "positions",
        "(shape.frames, 1) if",
        "(shape.frames, shape.frames) if",
        "POSITIONS-05",
    ),
    Mutation(
        "a reply goes on behind the largest number on any axis",
        "positions",
        "triples.max(initial=-1)",
        "triples[0].max(initial=-1)",
        "POSITIONS-16",
    ),
    Mutation(
        "a retracted request goes on behind its prompt",
        "positions",
        "[extend_positions(triples, triples.shape[1] + reply) for reply in replies]",
        "[triples := extend_positions(triples, triples.shape[1] + reply) for reply in replies]",
        "POSITIONS-28",
    ),
    Mutation(
        "a recording counts from where its video does",
        "positions",
        "np.arange(film.audio.token_count) + origin",
        "np.arange(film.audio.token_count) + triples[0, film.audio.spans[0].first]",
        "POSITIONS-24",
    ),
    Mutation(
        "text goes on behind the longer of a video and its recording",
        "positions",
        "max(_next(blocks[film.shape]), film.audio.token_count)",
        "film.audio.token_count",
        "POSITIONS-24",
    ),
    Mutation("height and width have only their turns", "positions", "axis : 3 * sections[axis] : 3", "axis::3", "POSITIONS-27"),
    Mutation(
        "what the prefix has of the encoder part is not the decoder's",
        "scheduling",
        "Chunk(chunk.prefix - encoder_length, chunk.length)",
        "Chunk(chunk.prefix, chunk.length)",
        "SCHEDULING-01",
    ),
    Mutation(
        "an item is kept to its last position",
        "scheduling",
        "prompt.ended.before(start) + room",
        "prompt.begun.before(start) + room",
        "SCHEDULING-08",
    ),
    Mutation(
        "an item that the prefix cuts is encoded",
        "scheduling",
        "np.maximum(spans.firsts[left], prefix)",
        "spans.firsts[left]",
        "SCHEDULING-07",
    ),
    Mutation("only one request is half done", "scheduling", " or (stop < prompt.length and half_done)", "", "SCHEDULING-15"),
    Mutation(
        "the requests of a step share its budget",
        "scheduling",
        "            room = _less(room, prompt, start, stop)\n",
        "",
        "SCHEDULING-16",
    ),
    Mutation(
        "the row of an item that stands at a slot is part of a page's key",
        "prefix_cache",
        "item.token_count, first - number * page, row + first - span.first, length)",
        "item.token_count, 0, 0, 0)",
        "PREFIX_CACHE-19",
    ),
    Mutation(
        "a page's key covers the page before it",
        "prefix_cache",
        "parent = sha256(parent + ",
        "parent = sha256(",
        "PREFIX_CACHE-19",
    ),
    Mutation("a node that is cut keeps its locks", "prefix_cache", ", locks=node.locks)", ")", "PREFIX_CACHE-11"),
    Mutation(
        "a namespace has a tree of its own",
        "prefix_cache",
        "    return namespace, padded[",
        "    return None, padded[",
        "PREFIX_CACHE-04",
    ),
    Mutation(
        "a cap on the tokens of a frame is followed",
        "planning/qwen_vl",
        "min(self.max_video_tokens * self.factor**2, self.max_pixels // frames)",
        "self.max_pixels // frames",
        "PLANNING-42",
    ),
    Mutation(
        "a video of many frames has smaller ones",
        "planning/qwen_vl",
        "budget * self.temporal_patch_size // frames",
        "budget",
        "PLANNING-41",
    ),
    Mutation(
        "ties are rounded to even",
        "planning/qwen_vl",
        "round(size.height / factor) * factor, round",
        "int(size.height / factor + 0.5) * factor, round",
        "PLANNING-01",
    ),
    Mutation(
        "a product of k - 1e-12 counts as k",
        "planning/llava",
        "round(size.width * (rows / size.height), 7)",
        "size.width * (rows / size.height)",
        "PLANNING-04",
    ),
    Mutation(
        "a larger canvas is taken for a picture that fills half of it",
        "planning/tiles",
        "area > 0.5 * tile",
        "area > 2.0 * tile",
        "PLANNING-06",
    ),
    Mutation(
        "hops are counted after resampling",
        "planning/audio",
        "samples * self.sampling_rate, rate), self",
        "samples, 1), self",
        "PLANNING-30",
    ),
    Mutation(
        "a hop that was begun does not count for Qwen3-Omni",
        "planning/audio",
        "rate) // self.hop_length",
        "rate + self.hop_length * rate - rate) // self.hop_length",
        "PLANNING-40",
    ),
    Mutation(
        "a picture is resized as a whole time step",
        "planning/qwen_vl",
        "self._grid(1, self._video_size(self.temporal_patch_size, size))",
        "self._grid(1, self._video_size(self.temporal_patch_size * 2, size))",
        "PLANNING-33",
    ),
    Mutation(
        "crops are rounded half up",
        "planning/tiles",
        "floor(long / short + 0.5)",
        "round(long / short)",
        "PLANNING-35",
    ),
    Mutation(
        "a canvas on which the picture just fits enlarges it",
        "planning/tiles",
        "if scale >= 1]",
        "if scale > 1]",
        "PLANNING-34",
    ),
    Mutation("a turn is made", "media/decoding", "TURNS.get(_orientation(picture))", "TURNS.get(1)", "MEDIA-03"),
    Mutation(
        "a transparent grey is as deep as its file",
        "media/decoding",
        "np.array(key) * (255 // (2**grey_bits - 1)) if",
        "np.array(key) if",
        "MEDIA-05",
    ),
    Mutation("the rows of a PNG are counted", "media/decoding", 'if picture.format == "PNG":', "if False:", "MEDIA-10"),
    Mutation("every address is checked", "media/urls", "if not all(is_public", "if not any(is_public", "MEDIA-19"),
    Mutation(
        "one clock runs over all reads",
        "media/fetching",
        "_left(self._deadline))\n        return",
        "5)\n        return",
        "MEDIA-26",
    ),
    Mutation(
        "a path is resolved before it is compared",
        "media/fetching",
        "Path(path).resolve(strict=True)",
        "Path(path)",
        "MEDIA-28",
    ),
    Mutation(
        "a rate is that of the whole video", "media/video", "times, float(fps), len(", "times, len(indices), len(", "MEDIA-42"
    ),
    Mutation("uneven times are kept", "media/video", "if not is_constant:", "if False:", "MEDIA-44"),
    Mutation("a display matrix is obeyed", "media/video", "pixels if matrix is None else", "pixels if True else", "MEDIA-45"),
    Mutation(
        "the first frame is at time 0", "media/video", "int(frame.pts - first)", "int(frame.pts - first + 512)", "MEDIA-43"
    ),
    Mutation("frames are counted", "media/video", "if len(moments) > limits.max_source_frames:", "if False:", "MEDIA-50"),
    Mutation(
        "playlists are not opened",
        "media/containers",
        'OPTIONS = {"format_whitelist": ",".join(FORMATS), ',
        "OPTIONS = {",
        "MEDIA-47",
    ),
    Mutation("one channel is the mean", "media/audio", "channels.mean(axis=0)", "channels[0]", "MEDIA-54"),
    Mutation(
        "samples are rounded up in number",
        "media/resampling",
        "-(-len(samples) * up // down)",
        "len(samples) * up // down",
        "MEDIA-56",
    ),
    Mutation("weights make up for their delay", "media/resampling", "(half, half + 1)", "(2 * half, 1)", "MEDIA-57"),
    Mutation("what is too high is filtered", "media/resampling", "ROLL_OFF * min(1.0, up / down)", "ROLL_OFF", "MEDIA-58"),
    Mutation(
        "samples are bounded as they come",
        "media/audio",
        "most = min(max_duration_s * rate, max_samples)",
        "most = float(1 << 62)",
        "MEDIA-63",
    ),
    Mutation(
        "later ranks embed nothing",
        "pipeline_ranks",
        "        hidden_states, deepstack = received\n",
        "        hidden_states, deepstack = received\n        encode([(request, chunk)], encoders)\n",
        "PIPELINE_RANKS-03",
    ),
    Mutation(
        "rows travel on to their layer",
        "pipeline_ranks",
        "if layer >= split[rank].stop}",
        "if layer > split[rank].stop}",
        "PIPELINE_RANKS-04",
    ),
    Mutation(
        "rows travel no further than that",
        "pipeline_ranks",
        "for layer, rows in deepstack.items() if layer >= split[rank].stop}",
        "for layer, rows in deepstack.items()}",
        "PIPELINE_RANKS-05",
    ),
    Mutation(
        "a level goes to the layer that takes it",
        "pipeline_ranks",
        "dict(zip(level_layers, levels, strict=True))",
        "dict(enumerate(levels))",
        "PIPELINE_RANKS-04",
    ),
    Mutation(
        "missing rows are missed",
        "pipeline_ranks",
        "            _check_received(rank, split, level_layers, deepstack)\n",
        "            pass\n",
        "PIPELINE_RANKS-07",
    ),
    Mutation(
        "the rows of later ranks are missed as well",
        "pipeline_ranks",
        "if layer >= split[rank].start and layer not in deepstack",
        "if layer in split[rank] and layer not in deepstack",
        "PIPELINE_RANKS-07",
    ),
    Mutation("the layers of ranks join", "pipeline_ranks", "before.stop != after.start", "False", "PIPELINE_RANKS-08"),
    Mutation(
        "no two levels share a layer",
        "pipeline_ranks",
        "if len({*level_layers}) != len(level_layers):",
        "if False:",
        "PIPELINE_RANKS-08",
    ),
    Mutation(
        "the rows of a draft shift with its ids",
        "speculation",
        "Chunk(chunk.prefix + 1, chunk.length))\n\n\ndef draft_positions",
        "chunk)\n\n\ndef draft_positions",
        "SPECULATION-02",
    ),
    Mutation(
        "the sampled id stands behind the last chunk only",
        "speculation",
        "ids = input_ids[chunk.prefix + 1 : chunk.stop + 1]\n    if chunk.length and chunk.stop == length:",
        "ids = input_ids[chunk.prefix + 1 : chunk.stop]\n    if chunk.length:",
        "SPECULATION-03",
    ),
    Mutation(
        "drafts go on behind the prompt",
        "speculation",
        "extend_positions(positions, length + steps)[:, chunk.prefix : chunk.stop + steps]",
        "np.pad(positions, ((0, 0), (0, steps)), mode='edge')[:, chunk.prefix : chunk.stop + steps]",
        "SPECULATION-09",
    ),
    Mutation("a proposal ends before media", "speculation", "stop[0] if stop.size else None", "None", "SPECULATION-13"),
    Mutation(
        "the longest match counts",
        "speculation",
        "            matched = begins\n",
        "            matched = matched if matched.size else begins\n",
        "SPECULATION-16",
    ),
    Mutation("a match has text behind it", "speculation", "np.flatnonzero(~media)", "np.arange(length)", "SPECULATION-16"),
    Mutation("caller hashes travel", "transport/wire", "        item.caller_hash,\n", "        None,\n", "TRANSPORT-01"),
    Mutation(
        "so do both bounds of a span",
        "transport/wire",
        "(span.first, span.last) for span",
        "(span.first, span.first) for span",
        "TRANSPORT-06",
    ),
    Mutation(
        "a version is looked at", "transport/wire", "bytes([VERSION]):", "data[len(MAGIC) : len(MAGIC) + 1]:", "TRANSPORT-20"
    ),
    Mutation("spans ascend", "transport/wire", "    wrong[1:] |= firsts[1:] <= lasts[:-1]\n", "", "TRANSPORT-26"),
    Mutation("spans lie within the prompt", "transport/wire", " | (lasts >= length)", "", "TRANSPORT-26"),
    Mutation(
        "spans of two items are disjoint",
        "transport/wire",
        "        span_table(made, len(input_ids))\n",
        "        pass\n",
        "TRANSPORT-26",
    ),
    Mutation(
        "truth values are no numbers",
        "transport/wire",
        "type(modality) is not int or modality not in",
        "modality not in",
        "TRANSPORT-24",
    ),
    Mutation(
        "a payload has its bits as they are", "transport/values", "view(torch.uint8).numpy()", "float().numpy()", "TRANSPORT-02"
    ),
    Mutation(
        "elements are written little-endian",
        "transport/values",
        "np.asarray(array).astype(ARRAY_DTYPES[name], copy=False)",
        "np.asarray(array)",
        "TRANSPORT-05",
    ),
    Mutation("conjugates are resolved", "transport/values", ".resolve_conj()", "", "TRANSPORT-05"),
    Mutation(
        "shapes agree with their bytes",
        "transport/values",
        "prod(shape) * known.itemsize == len(payload)",
        "prod(shape) * known.itemsize >= len(payload)",
        "TRANSPORT-26",
    ),
    Mutation(
        "sizes are not negative", "transport/values", "type(size) is int and size >= 0", "type(size) is int", "TRANSPORT-26"
    ),
    Mutation("names ascend", "transport/values", "last is None or last < name", "True", "TRANSPORT-23"),
    Mutation(
        "only 0 and 1 are truth values", "transport/values", 'not payload.translate(None, b"\\0\\1")', "True", "TRANSPORT-24"
    ),
    Mutation("nesting is counted", "transport/survey", "or len(left) > limits.depth", "", "TRANSPORT-21"),
    Mutation(
        "numbers stand in their shortest form",
        "transport/survey",
        "number >= least if kind == NEGATIVE else number < least",
        "False",
        "TRANSPORT-25",
    ),
    Mutation(
        "floats have 64 bits",
        "transport/survey",
        "    0xCB: (FLOAT, 8, 0),\n",
        "    0xCB: (FLOAT, 8, 0),\n    0xCA: (FLOAT, 4, 0),\n",
        "TRANSPORT-25",
    ),
    Mutation(
        "the reply is a part of the history",
        "lifecycle/turns",
        "past = np.concatenate([history.input_ids, reply])",
        "past = history.input_ids",
        "LIFECYCLE-01",
    ),
    Mutation(
        "an item behind the cut goes",
        "lifecycle/turns",
        "    if item.spans[0].first >= kept:\n        return False\n",
        "",
        "LIFECYCLE-06",
    ),
    Mutation(
        "a turn that is stripped counts from one position later",
        "lifecycle/turns",
        "turn = turn[:, 1:] - 1",
        "turn = turn[:, 1:]",
        "LIFECYCLE-14",
    ),
    Mutation(
        "a reply has modalities, all of them text",
        "lifecycle/turns",
        "np.zeros(length - len(known), dtype=np.int8)",
        "np.zeros(0, dtype=np.int8)",
        "LIFECYCLE-15",
    ),
    Mutation(
        "padded ids of another length are none of this turn",
        "lifecycle/turns",
        "made is not None and len(made) == len(turn_ids)",
        "made is not None",
        "LIFECYCLE-17",
    ),
    Mutation(
        "a retraction takes back what was computed",
        "lifecycle/requests",
        "self._life(id).computed = None",
        "self._life(id)",
        "LIFECYCLE-20",
    ),
    Mutation(
        "content stays while another needs it",
        "lifecycle/requests",
        "            if not self._owners[medium]:\n",
        "            if True:\n",
        "LIFECYCLE-24",
    ),
    Mutation(
        "a session keeps the content of its last turn",
        "lifecycle/requests",
        'self._own(("session", life.session), life.media)',
        "pass",
        "LIFECYCLE-25",
    ),
    Mutation("an abort gives back", "lifecycle/requests", '        self._own(("request", id), ())\n', "", "LIFECYCLE-29"),
    Mutation(
        "a turn that outlives its session leaves it nothing",
        "lifecycle/requests",
        "                life.session = None\n",
        "                pass\n",
        "LIFECYCLE-29",
    ),
    Mutation("who fails is aborted", "lifecycle/requests", "            self.abort(request.id)\n", "", "LIFECYCLE-32"),
    Mutation(
        "content leaves the device when it was read",
        "lifecycle/requests",
        "            self._device.release()\n",
        "            pass\n",
        "LIFECYCLE-33",
    ),
    Mutation("a lazy conjugate is resolved", "transport/tensors", ".resolve_conj().resolve_neg()", "", "TRANSPORT-31"),
    Mutation(
        "an array stays one",
        "transport/tensors",
        "    if form.is_array:\n        return np",
        "    if False:\n        return np",
        "TRANSPORT-30",
    ),
    Mutation(
        "the digest of a packet is checked",
        "transport/packets",
        "if not hmac.compare_digest(blake3(content, key=key).digest(), digest):",
        "if False:",
        "TRANSPORT-47",
    ),
    Mutation("who died is waited for no more", "transport/ledger", "return not living[process] or", "return", "TRANSPORT-59"),
    Mutation(
        "what a reader has opened is not taken from it",
        "transport/ledger",
        "(has_left and not is_open)",
        "has_left",
        "TRANSPORT-43",
    ),
    Mutation(
        "a fork gives nothing back", "transport/reader", "if os.getpid() == pid else None", "if True else None", "TRANSPORT-61"
    ),
    Mutation("a reader's pages are its own", "transport/reader", "shared=False", "shared=True", "TRANSPORT-37"),
    Mutation(
        "a place is given back with its tensor", "transport/reader", "weakref.finalize(mapping, done)", "pass", "TRANSPORT-39"
    ),
    Mutation(
        "a place waits until its copy is done",
        "transport/reader",
        "[one for one in self._pending if one[0].is_done()]",
        "[*self._pending]",
        "TRANSPORT-72",
    ),
    Mutation(
        "a packet goes out when its bytes are there",
        "transport/pools",
        "self._memory, place).wait()",
        "self._memory, place)",
        "TRANSPORT-73",
    ),
    Mutation(
        "what the dead have left is swept", "transport/channel", "                owners.sweep(folder)\n", "", "TRANSPORT-57"
    ),
    Mutation("nothing is left of a refused list", "transport/channel", "            self._undo(placed)\n", "", "TRANSPORT-42"),
    Mutation(
        "what finds no room on a device goes by the host",
        "transport/channel",
        "            value = self._device.to_host(value)\n",
        "",
        "TRANSPORT-74",
    ),
    Mutation(
        "a closed channel is removed",
        "transport/channel",
        "            self._segment.remove()\n\n    def _open_pools",
        "            pass\n\n    def _open_pools",
        "TRANSPORT-53",
    ),
    Mutation("the living are left alone", "transport/owners", "return not is_alive(owner.word)", "return True", "TRANSPORT-58"),
    Mutation(
        "every process has a device of its own",
        "parallel/launching",
        "device=layout.first_device + local * layout.device_step",
        "device=layout.first_device + tp * layout.device_step",
        "PARALLEL-02",
    ),
    Mutation(
        "experts are held by ranks in a row",
        "parallel/launching",
        "ep=tp // (layout.tp // layout.ep)",
        "ep=tp % layout.ep",
        "PARALLEL-07",
    ),
    Mutation(
        "expert ranks divide the tensor ranks",
        "parallel/launching",
        'for name in ("attention_dp", "ep"):',
        'for name in ("attention_dp",):',
        "PARALLEL-08",
    ),
    Mutation(
        "what failed anywhere fails everywhere",
        "parallel/ranks",
        "self._group.all_gather(json.dumps(failures).encode()):",
        "self._group.all_gather(json.dumps(failures).encode())[self._group.rank :][:1]:",
        "PARALLEL-14",
    ),
    Mutation(
        "an item without content ends at the entrance",
        "parallel/ranks",
        "            if item.is_empty:\n",
        "            if False:\n",
        "PARALLEL-16",
    ),
    Mutation(
        "a group for attention is a world of its own",
        "parallel/ranks",
        "if groups > 1 else collectives",
        "if groups > 9 else collectives",
        "PARALLEL-17",
    ),
    Mutation(
        "a rank takes its copy to its own device",
        "parallel/ranks",
        "upload(tensor, self._device)",
        "upload(tensor, 0)",
        "PARALLEL-18",
    ),
    Mutation(
        "the largest item comes first",
        "parallel/encoder_ranks",
        "key=lambda number: -sizes[number]",
        "key=lambda number: number",
        "PARALLEL-22",
    ),
    Mutation(
        "what an encoder raises concerns its item",
        "parallel/encoder_ranks",
        '        return f"{type(error).__name__}: {error}"\n',
        "        raise\n",
        "PARALLEL-26",
    ),
    Mutation(
        "a report that is late is no news",
        "parallel/routing",
        "is_late = replica.last is not None and sequence <= replica.last",
        "is_late = False",
        "PARALLEL-32",
    ),
    Mutation(
        "what is under way counts beside a report",
        "parallel/routing",
        "replica.requests = load.requests + len(replica.under_way)",
        "replica.requests = load.requests",
        "PARALLEL-30",
    ),
    Mutation(
        "a dead rank is not chosen by its room",
        "parallel/routing",
        'raise ValueError(f"rank {rank} {why}, and is dead")',
        "pass",
        "PARALLEL-36",
    ),
    Mutation(
        "a prefix is worth what it saves",
        "parallel/routing",
        "< self._ranks[best].tokens + missing",
        "< self._ranks[best].tokens + count",
        "PARALLEL-40",
    ),
    Mutation(
        "a rank that died is known for nothing",
        "parallel/routing",
        "tuple(one for one in self._holders[key] if one != rank)",
        "self._holders[key]",
        "PARALLEL-43",
    ),
    Mutation(
        "an item without a place is in no key",
        "parallel/routing",
        "if any(not item.spans for item in request.items):",
        "if False:",
        "PARALLEL-47",
    ),
    Mutation(
        "a modality goes on where the one before stopped",
        "disaggregation/assignment",
        "        first += surplus\n",
        "",
        "DISAGGREGATION-03",
    ),
    Mutation(
        "options go with their items",
        "disaggregation/assignment",
        "tuple(options[number] for number in mine)",
        "tuple(options[: len(mine)])",
        "DISAGGREGATION-04",
    ),
    Mutation(
        "without a tower nothing is encoded here",
        "disaggregation/assignment",
        "    if has_tower and (count",
        "    if (count",
        "DISAGGREGATION-07",
    ),
    Mutation(
        "an entry of another length is of no use",
        "disaggregation/assignment",
        "rows if rows is not None and len(rows) == item.token_count else None",
        "rows",
        "DISAGGREGATION-08",
    ),
    Mutation(
        "no medium is None",
        "disaggregation/encoder_side",
        " or not media or any(one is None for one in media):",
        " or not media:",
        "DISAGGREGATION-12",
    ),
    Mutation(
        "a part ends when all have it",
        "disaggregation/encoder_side",
        " or len(one.reached) == one.receivers",
        "",
        "DISAGGREGATION-19",
    ),
    Mutation(
        "nothing ends a part that is being sent",
        "disaggregation/encoder_side",
        ' or one.state == "encoding" or one.sending:',
        ' or one.state == "encoding":',
        "DISAGGREGATION-21",
    ),
    Mutation(
        "a failed transfer ends its part",
        "disaggregation/encoder_side",
        "one.is_over or error is not None or",
        "one.is_over or",
        "DISAGGREGATION-17",
    ),
    Mutation(
        "a part that is heard of is not stale",
        "disaggregation/encoder_side",
        "        one.sending.discard(receiver)\n        one.touched = now\n",
        "        one.sending.discard(receiver)\n",
        "DISAGGREGATION-18",
    ),
    Mutation(
        "what is in the queue can be cancelled",
        "disaggregation/encoder_side",
        "            self._queue.remove(name)\n",
        "            pass\n",
        "DISAGGREGATION-16",
    ),
    Mutation(
        "rows are copied as they come",
        "disaggregation/receiver",
        "torch.split(rows.clone(), lengths)",
        "torch.split(rows, lengths)",
        "DISAGGREGATION-23",
    ),
    Mutation(
        "a repeated part is dropped",
        "disaggregation/receiver",
        "        if one is None or part in one.arrived:\n",
        "        if one is None:\n",
        "DISAGGREGATION-26",
    ),
    Mutation(
        "rows of another type do not fit",
        "disaggregation/receiver",
        "(other.shape[1], other.dtype) != (rows.shape[1], rows.dtype)",
        "other.shape[1] != rows.shape[1]",
        "DISAGGREGATION-27",
    ),
    Mutation(
        "fields are those of the item",
        "disaggregation/receiver",
        "one.fields |= zip(numbers, fields, strict=False)",
        "one.fields |= enumerate(fields)",
        "DISAGGREGATION-31",
    ),
    Mutation(
        "a complete request is never too late",
        "disaggregation/receiver",
        "if one.missing and now - one.since",
        "if now - one.since",
        "DISAGGREGATION-50",
    ),
    Mutation(
        "a room that was aborted says so to a decode that is ready later",
        "disaggregation/prefill_side",
        '        if word == "ready" and heard.is_over:\n',
        '        if word == "ready" and False:\n',
        "DISAGGREGATION-43",
    ),
    Mutation(
        "what was computed before the decode was ready is sent to it",
        "disaggregation/prefill_side",
        "[_chunk(room, one, decode, *stored) for stored in one.stored] + metadata",
        "metadata",
        "DISAGGREGATION-36",
    ),
    Mutation(
        "a decode that has everything says so",
        "disaggregation/decode_side",
        '        return [_answer("have", room, one, prefill)]\n',
        "        return []\n",
        "DISAGGREGATION-45",
    ),
    Mutation(
        "two prompts are compared medium by medium",
        "disaggregation/decode_side",
        "        if _traits(mine) != _traits(other):\n",
        "        if False:\n",
        "DISAGGREGATION-41",
    ),
    Mutation(
        "rows are joined in their order",
        "disaggregation/decode_side",
        "            at += len(found[-1])\n        return found\n",
        "            at += len(found[-1])\n        return list(self.chunks.values())\n",
        "DISAGGREGATION-36",
    ),
    Mutation(
        "an open room ends with its time",
        "disaggregation/decode_side",
        "if now - one.since > self._limit_s:",
        "if now - one.since > 2 * self._limit_s:",
        "DISAGGREGATION-44",
    ),
    Mutation(
        "identities travel",
        "disaggregation/wire",
        'None if one["identity"] is None else bytes.fromhex(one["identity"])',
        "bytes(32)",
        "DISAGGREGATION-40",
    ),
    Mutation(
        "what is on offer is a copy",
        "disaggregation/carriers",
        "rows.detach().clone()",
        "rows.detach()",
        "DISAGGREGATION-09",
    ),
    Mutation(
        "words are mixed with their place in the tensor",
        "kernels/hashing",
        "places = (start // 4 + np.arange(tiles.size))",
        "places = (np.arange(tiles.size) % TILE_WORDS)",
        "KERNELS-02",
    ),
    Mutation(
        "the last word is filled up",
        "kernels/hashing",
        "padded_bytes = (len(data) + 3) // 4 * 4",
        "padded_bytes = len(data) // 4 * 4",
        "KERNELS-03",
    ),
    Mutation(
        "what fills up a tile is not mixed in",
        "kernels/hashing",
        " ^ _rotate(places, 15)) * there",
        " ^ _rotate(places, 15))",
        "KERNELS-01",
    ),
    Mutation(
        "bytes are those of the elements in their order",
        "kernels/dispatch",
        "_resolved(tensor).contiguous()",
        "_resolved(tensor)",
        "KERNELS-04",
    ),
    Mutation(
        "ids are compared in 64 bits",
        "kernels/masks",
        "_is_one_of(input_ids.to(torch.int64), sentinels)",
        "_is_one_of(input_ids, sentinels.to(input_ids.dtype))",
        "KERNELS-11",
    ),
    Mutation(
        "an id behind the last sentinel is none",
        "kernels/masks",
        "    return ascending[places] == ids\n",
        "    return ascending[places] <= ids\n",
        "KERNELS-10",
    ),
    Mutation(
        "a mask is made where the ids lie",
        "kernels/masks",
        "return torch.zeros(len(ids), dtype=torch.bool, device=ids.device)",
        "return torch.zeros(len(ids), dtype=torch.bool)",
        "KERNELS-24",
    ),
    Mutation(
        "spans are counted from the chunk",
        "kernels/masks",
        "np.clip(edges - chunk.prefix, 0, chunk.length)",
        "np.clip(edges, 0, chunk.length)",
        "KERNELS-21",
    ),
    Mutation(
        "rows are counted before they are scattered",
        "kernels/rows",
        "    if len(rows) != wanted:\n",
        "    if len(rows) < wanted:\n",
        "KERNELS-14",
    ),
    Mutation(
        "scattering makes a new tensor",
        "kernels/rows",
        ".index_copy(0, mask",
        ".index_copy_(0, mask",
        "KERNELS-15",
    ),
    Mutation(
        "ids are clamped into the table",
        "kernels/rows",
        "clamp(0, max(len(table) - 1, 0))",
        "clamp(0, len(table))",
        "KERNELS-18",
    ),
    Mutation(
        "rows are counted before they are merged",
        "kernels/rows",
        "    if len(rows) != found.total:\n",
        "    if False:\n",
        "KERNELS-19",
    ),
    Mutation(
        "levels have zeros at text",
        "kernels/rows",
        "    out[0, ~media] = table",
        "    out[:, ~media] = table",
        "KERNELS-17",
    ),
    Mutation(
        "what a merge needs is made where its ids lie",
        "kernels/rows",
        "media = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)",
        "media = torch.zeros(len(ids), dtype=torch.bool)",
        "KERNELS-22",
    ),
]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the reference."""
    shutil.copytree(HOME / "reference", tmp_path / "reference", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.loss)
def test_a_loss_turns_a_requirement_red(mutation: Mutation, copy: Path, attempt: Try) -> None:
    module = copy / "reference" / f"{mutation.stage}.py"
    text = module.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, "the place of the mutation must be there, once"
    module.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")
    verdicts = attempt(copy, mutation.caught_by)
    assert "fail" in verdicts, verdicts
    assert set(verdicts) <= {"fail", "pass"}, verdicts


def test_an_unharmed_copy_holds(copy: Path, attempt: Try) -> None:
    one_a_stage = {mutation.stage: mutation.caught_by for mutation in MUTATIONS}.values()
    assert {id: attempt(copy, id) for id in one_a_stage} == {id: ["pass"] for id in one_a_stage}
