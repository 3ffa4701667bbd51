"""What SGLang 0.5.23 gets wrong before a request comes to its scheduler, and when it comes back: seen without the suite.

`python -m conformance.adapters.sglang.check` runs these, too. Processors are transformers' own, over a tokenizer of bytes.
"""

import asyncio
import socket
import threading
import time
from array import array
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from PIL import Image

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu

CHECKS = Checks()
fails = CHECKS.fails

SPECIAL = (
    "<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>", "<|audio_bos|>", "<|AUDIO|>", "<|audio_eos|>",
    "[IMG]", "[IMG_BREAK]", "[IMG_END]", "<start_of_image>", "<image_soft_token>", "<end_of_image>", "<image>",
    "<fake_token_around_image>", "<global-img>", "<end_of_utterance>",
)  # fmt: skip


def library() -> Any:
    cpu.prepare()
    return import_module("transformers")


@cache
def tokenizer() -> Any:
    """256 bytes, and behind them the special tokens in their order; three have names, as in Gemma 3."""
    spelling = import_module("transformers.convert_slow_tokenizer").bytes_to_unicode()
    named = {"image_token": "<image_soft_token>", "boi_token": "<start_of_image>", "eoi_token": "<end_of_image>"}
    made = library().Qwen2Tokenizer(
        vocab={character: byte for byte, character in spelling.items()}, merges=[], extra_special_tokens=named
    )
    made.add_special_tokens({"additional_special_tokens": list(SPECIAL)})
    return made


def id_of(token: str) -> int:
    return int(tokenizer().convert_tokens_to_ids(token))


def qwen2() -> Any:
    parts = library()
    size = {"shortest_edge": 56 * 56, "longest_edge": 112 * 112}
    pictures, videos = parts.Qwen2VLImageProcessorPil(size=size), parts.Qwen2VLVideoProcessor(size=size, do_sample_frames=False)
    return parts.Qwen2VLProcessor(pictures, tokenizer(), videos)


def qwen3() -> Any:
    parts = library()
    size = {"shortest_edge": 64 * 64, "longest_edge": 128 * 128}
    settings = {"size": size, "patch_size": 16}
    videos = parts.Qwen3VLVideoProcessor(do_sample_frames=False, **settings)
    return parts.Qwen3VLProcessor(parts.Qwen2VLImageProcessorPil(**settings), tokenizer(), videos)


def pixtral() -> Any:
    parts = library()
    pictures = parts.PixtralImageProcessorPil(size={"longest_edge": 64}, patch_size={"height": 16, "width": 16})
    return parts.PixtralProcessor(pictures, tokenizer(), patch_size=16)


def gemma3() -> Any:
    pictures = library().Gemma3ImageProcessorPil(size={"height": 28, "width": 28})
    return library().Gemma3Processor(pictures, tokenizer(), image_seq_length=4)


def idefics3() -> Any:
    pictures = library().Idefics3ImageProcessorPil(size={"longest_edge": 28}, max_image_size={"longest_edge": 28})
    return library().Idefics3Processor(pictures, tokenizer(), image_seq_len=4)


def smolvlm() -> Any:
    sizes = {"size": {"longest_edge": 28}, "max_image_size": {"longest_edge": 28}}
    videos = library().SmolVLMVideoProcessor(do_sample_frames=False, **sizes)
    return library().SmolVLMProcessor(library().SmolVLMImageProcessorPil(**sizes), tokenizer(), videos, image_seq_len=4)


def qwen2_audio() -> Any:
    return library().Qwen2AudioProcessor(library().WhisperFeatureExtractor(feature_size=8, chunk_length=1), tokenizer())


@cache
def served(build: Callable[[], Any], module: str, name: str, model_type: str = "", alone: bool = False) -> Any:
    """SGLang's processor of this name over one of transformers, or over its tokenizer alone."""
    config = library().PretrainedConfig(
        vision_start_token_id=id_of("<|vision_start|>"),
        vision_end_token_id=id_of("<|vision_end|>"),
        image_token_id=id_of("<image>" if build is idefics3 else "<|image_pad|>"),
        video_token_id=id_of("<|video_pad|>"),
        image_token_index=id_of("[IMG]" if build is pixtral else "<image_soft_token>"),
        boi_token_index=id_of("<start_of_image>"),
        eoi_token_index=id_of("<end_of_image>"),
    )
    config.model_type = model_type
    config.vision_config = SimpleNamespace(spatial_merge_size=2 if "qwen" in model_type else 1, image_size=64, patch_size=16)
    made = getattr(cpu.module(f"sglang.srt.multimodal.processors.{module}"), name)
    arguments = cpu.module("sglang.srt.runtime_context").get_server_args()
    return made(config, arguments, tokenizer() if alone else build(), "default", skip_mm_pool=True)


def as_qwen2(**more: Any) -> Any:
    return served(qwen2, "qwen_vl", "QwenVLImageProcessor", "qwen2_vl", **more)


def as_qwen3() -> Any:
    return served(qwen3, "qwen_vl", "QwenVLImageProcessor", "qwen3_vl")


def as_pixtral() -> Any:
    return served(pixtral, "pixtral", "PixtralProcessor")


def as_gemma3(**more: Any) -> Any:
    return served(gemma3, "gemma3", "Gemma3SGLangImageProcessor", **more)


def as_idefics3() -> Any:
    return served(idefics3, "transformers_auto", "TransformersAutoMultimodalProcessor")


def processed(processor: Any, prompt: Any, images: Any = None, videos: Any = None, audios: Any = None) -> Any:
    request = SimpleNamespace(video_data=videos, audio_data=audios)
    return asyncio.run(
        processor.process_mm_data_async(image_data=images, audio_data=audios, input_text=prompt, request_obj=request)
    )


def picture(width: int = 56, height: int = 56) -> Image.Image:
    return Image.new("RGB", (width, height), (width % 256, height % 256, 7))


def marked(count: int, kind: str = "image") -> str:
    return f"<|vision_start|><|{kind}_pad|><|vision_end|>" * count


def frames(count: int = 4) -> torch.Tensor:
    return torch.arange(count * 3 * 56 * 56, dtype=torch.int64).remainder(251).to(torch.uint8).view(count, 3, 56, 56)


@fails("PROCESSORS-01", "PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-04")
def pictures_without_markers_are_dropped() -> bool:
    """Where Qwen's placeholder has no start and end token around it, the picture is left out, and the placeholder stays."""
    output = processed(as_qwen2(), "<|image_pad|> a", [picture()])
    return (output.input_ids, output.mm_items) == ([id_of("<|image_pad|>"), 32, 97], [])


@fails("PROCESSORS-01", "PROCESSORS-20")
def recordings_without_markers_are_an_assertion() -> bool:
    """Where Qwen2-Audio's placeholder has no start and end token around it, or its prompt no recording, an assertion fails."""
    audio = served(qwen2_audio, "qwen_audio", "Qwen2AudioMultimodalProcessor")
    call = audio.process_mm_data_async
    return error(lambda: asyncio.run(call(audio_data=None, input_text="<|AUDIO|>", image_data=[picture()]))) == "AssertionError"


@fails("PROCESSORS-01", "PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-04", "PROCESSORS-13", "PROCESSORS-14")
def frames_for_qwen3() -> bool:
    """Frames that were taken from a video already have no metadata, which Qwen3-VL's processor does not do without."""
    return error(lambda: processed(as_qwen3(), marked(1, "video"), videos=[frames()])) == "StrictDataclassFieldValidationError"


@fails("PROCESSORS-01", "PROCESSORS-04")
def frames_without_a_rate() -> bool:
    """Frames that were taken from a video already come without their rate: SmolVLM is told the times of 24 a second."""
    processor = served(smolvlm, "transformers_auto", "TransformersAutoMultimodalProcessor")
    told = tokenizer().decode(processed(processor, "<video>", videos=[frames()]).input_ids)
    return bool(told.count("Frame from 00:00:") == 4)


@fails("PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-09", "PROCESSORS-10", "PROCESSORS-11", "PROCESSORS-12", "PROCESSORS-13")
def two_videos_are_one_item() -> bool:
    """Two videos, each in one span, stay one item, for the spans are compared with the number of frames."""
    output = processed(as_qwen2(), marked(2, "video"), videos=[frames(), frames(2)])
    return [len(one.offsets) for one in output.mm_items] == [2]


@fails("PROCESSORS-02", "PROCESSORS-03", "PROCESSORS-04", "PROCESSORS-05", "PROCESSORS-07")
def generic_items_are_bundles() -> bool:
    """The processor of the transformers backend keeps all pictures of a prompt in one item, and takes no ids."""
    output = processed(as_idefics3(), "<image> and <image>", [picture(), picture(28, 28)])
    ids = error(lambda: processed(as_idefics3(), [id_of("<image>")], [picture()]))
    return len(output.mm_items) == 1 and ids == "AttributeError"


@fails("PROCESSORS-05")
def ids_of_gemma_are_spelled_again() -> bool:
    """The ids of a prompt for Gemma 3 are decoded and tokenized: e and its accent, which were four ids, become two."""
    ids = [*"e\u0301".encode(), id_of("<start_of_image>")]
    return bytes(processed(as_gemma3(), ids, [picture()]).input_ids[:2]) == "\u00e9".encode()


@fails("PROCESSORS-06")
def typed_placeholders_are_tokens() -> bool:
    """A placeholder that was typed into text is tokenized as one, in a prompt without media, too."""
    return bool(tokenizer()("<|image_pad|>")["input_ids"] == [id_of("<|image_pad|>")])


@fails("PROCESSORS-06", "PROCESSORS-07")
def typed_placeholders_of_qwen3() -> bool:
    """A placeholder that was typed in front of a picture is an index out of range for Qwen3-VL, and an item's for Gemma 3."""
    typed = error(lambda: processed(as_qwen3(), "a<|image_pad|>" + marked(1), [picture()]))
    ids = [id_of("<image_soft_token>"), 65, id_of("<start_of_image>")]
    return typed == "IndexError" and bool(processed(as_gemma3(), ids, [picture()]).mm_items[0].offsets[0] == (0, 0))


@fails("PROCESSORS-09", "PROCESSORS-10", "PROCESSORS-11", "PROCESSORS-13", "PROCESSORS-14", "PROCESSORS-15")
def bound_placeholders_form_a_ring() -> bool:
    """In a prompt that begins and ends with pictures the last one's span runs on to the end of the first."""
    ids = [id_of("<|image_pad|>")] * 4 + [32] + [id_of("<|image_pad|>")] * 4
    made = qwen2().image_processor([picture(), picture()], return_tensors="pt")
    items = processed(as_qwen2(), ids, [{"format": "processor_output", **made}]).mm_items
    return bool(items[0].offsets == [(5, 3)])


@fails("PROCESSORS-03", "PROCESSORS-09", "PROCESSORS-10", "PROCESSORS-11", "PROCESSORS-12")
def pixtral_keeps_padding() -> bool:
    """Of two pictures for Pixtral the smaller one keeps the padding of the batch; as a processor's output they are one item."""
    both = [picture(64, 64), picture(32, 64)]
    output = processed(as_pixtral(), "[IMG] [IMG]", both)
    made = pixtral()(images=both, text="[IMG] [IMG]", return_tensors="pt")
    ids = made["input_ids"][0].tolist()
    given = {"format": "processor_output", **{name: made[name] for name in ("pixel_values", "image_sizes")}}
    bound = processed(as_pixtral(), ids, [given])
    return tuple(output.mm_items[1].feature.shape) == (1, 3, 64, 64) and len(bound.mm_items) == 1


@fails("PROCESSORS-14", "PROCESSORS-15")
def rows_of_an_encoder_are_one_item() -> bool:
    """Two pictures that come with an encoder's rows are one item, for these are cut by patches and not by tokens."""
    ids = [9] + [id_of("<|image_pad|>")] * 4 + [32] + [id_of("<|image_pad|>")] * 4 + [9]
    grids = torch.tensor([[1, 4, 4], [1, 4, 4]])
    given = {"format": "precomputed_embedding", "feature": torch.zeros(8, 2), "image_grid_thw": grids}
    return len(processed(as_qwen2(), ids, [given]).mm_items) == 1


@fails("PROCESSORS-16")
def placeholders_are_not_counted() -> bool:
    """Rows of two pictures in a prompt with placeholders for one, or for none, are an item, and no error."""
    made = qwen2().image_processor([picture(), picture()], return_tensors="pt")
    prompts = ([9] + [id_of("<|image_pad|>")] * 4 + [9], [9])
    items = [processed(as_qwen2(), ids, [{"format": "processor_output", **made}]).mm_items for ids in prompts]
    return [[len(one.feature) for one in found] for found in items] == [[32], [32]]


@fails("PROCESSORS-19")
def a_video_of_nothing() -> bool:
    """A video without frames is an item."""
    return len(processed(as_qwen2(), marked(1, "video"), videos=[frames(0)]).mm_items) == 1


@fails("PROCESSORS-20")
def media_that_a_model_does_not_take() -> bool:
    """A video for Pixtral and a recording for Qwen2-VL are left out without a word."""
    videos = processed(as_pixtral(), "What?", videos=[frames()])
    audios = processed(as_qwen2(), "What?", audios=[b"RIFF"])
    return (videos.mm_items, audios.mm_items) == ([], [])


@fails("PROCESSORS-21")
def a_tokenizer_is_a_processor() -> bool:
    """Where a processor could not be had, its tokenizer serves: the picture for Gemma 3 is gone; Qwen's has no tokenizer."""
    output = processed(as_gemma3(alone=True), "<start_of_image>", [picture()])
    return (len(output.input_ids), output.mm_items) == (1, []) and error(lambda: as_qwen2(alone=True)) == "AttributeError"


@fails("POSITIONS-28")
def positions_grow_at_each_attempt() -> bool:
    """Each time that a retracted request is looked at, its table of positions grows by the reply: 5, 7, 9 columns."""
    batch = cpu.prepare().batch
    sampling = cpu.module("sglang.srt.sampling.sampling_params").SamplingParams(max_new_tokens=9)
    request = batch.Req(rid="", origin_input_text="", origin_input_ids=array("q", [1, 2, 3]), sampling_params=sampling)
    request.multimodal_inputs = batch.MultimodalInputs(mm_items=[], mrope_positions=torch.arange(3).expand(3, -1))
    request.output_ids = array("q", [4, 5])
    request.reset_for_retract()
    lengths = []
    for _ in range(3):
        request.init_next_round_input()
        lengths.append(request.multimodal_inputs.mrope_positions.shape[1])
    return lengths == [5, 7, 9]


@fails("ENCODING-28", "ENCODING-29")
def sparse_rows() -> bool:
    """A precomputed embedding that is sparse fails its whole batch, whatever it holds."""
    schedule = cpu.prepare().schedule
    return error(lambda: schedule.get_embedding_chunk(torch.zeros(2, 1).to_sparse(), 0, 2, [(0, 1)])) in (
        "RuntimeError",
        "NotImplementedError",
    )


def loaded(reference: str) -> str:
    """The error that a reference to a picture ends with; the picture that it stands for is none, and is decoded last."""
    base = cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor
    try:
        base._load_single_item(reference, cpu.prepare().batch.Modality.IMAGE)
    except Exception as raised:
        return f"{type(raised).__name__}: {raised}"
    return ""


def downloaded(url: str, answer: bytes, *, limit: int | None = None) -> tuple[bytes, list[str]]:
    """What `download_remote_media` makes of a URL that a server on this machine answers, and what that was asked for."""
    common = cpu.module("sglang.srt.utils.common")
    asked: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            with door.accept()[0] as link:
                asked.append(link.recv(4096).split(b"\r\n")[0].decode())
                link.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        found: bytes = common.download_remote_media(url.format(port=door.getsockname()[1]), 5)
    return found, asked


PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\ncat"


@fails("MEDIA-16", "MEDIA-18")
def schemes_in_capitals() -> bool:
    """DATA: and HTTP: are taken for base64, and so is a data URI that is percent-encoded."""
    references = ("DATA:image/png;base64,AAAA", "HTTP://media.example/cat", "data:,a%20b")
    return all("base64" in loaded(one) for one in references)


@fails("MEDIA-19", "MEDIA-20", "MEDIA-21", "MEDIA-22")
def this_machine_is_asked() -> bool:
    """A URL that leads to this machine is followed, by its address, in decimal and with a user name; so is any port."""
    hosts = ("127.0.0.1", "2130706433", "user:word@127.0.0.1")
    return all(downloaded(f"http://{host}:{{port}}/cat", PAGE)[0] == b"cat" for host in hosts)


@fails("MEDIA-22", "MEDIA-28", "MEDIA-29")
def any_file_is_read() -> bool:
    """A picture may be any file of the server, in whatever folder and of whatever size, through `..` as well."""
    with TemporaryDirectory() as folder:
        Path(folder, "secret.png").write_bytes(b"secret")
        said = [loaded(f"{folder}/secret.png"), loaded(f"file://{folder}/../{Path(folder).name}/secret.png")]
    return all("cannot identify image file" in one for one in said)


@fails("MEDIA-24")
def data_have_no_limit() -> bool:
    """The limit of bytes holds for downloads: a data URI beyond it is decoded."""
    common = cpu.module("sglang.srt.utils.common")
    with patch.object(common, "_media_url_max_file_size_bytes", 1):
        return len(common.get_image_bytes("data:;base64,AAAA")) == 3


@fails("MEDIA-25")
def a_part_is_the_whole() -> bool:
    """An answer with the status 206, a part of a file, is taken for the file."""
    return downloaded("http://127.0.0.1:{port}/cat", PAGE.replace(b"200 OK", b"206 Partial Content"))[0] == b"cat"


@fails("MEDIA-30", "MEDIA-31")
def refusals_of_references() -> bool:
    """A file that is not there is the server's fault, with its path; of an empty one the address in memory is told."""
    missing, empty = loaded("/nowhere/cat.png"), loaded("data:image/png;base64,")
    return missing.startswith("RuntimeError") and "/nowhere/cat.png'" in missing and " at 0x" in empty


class Background:
    """`MultimodalPreprocessCache` and `MultimodalProcessorExecutor` with one worker."""

    def __init__(self) -> None:
        cache = cpu.module("sglang.srt.multimodal.cache.preprocess_cache").MultimodalPreprocessCache
        executor = cpu.module("sglang.srt.multimodal.processors.executor").MultimodalProcessorExecutor
        self.cache, self.executor = cache(1 << 20), executor(lambda: None, 1)

    async def get(self, key: str, work: Callable[[], Any]) -> Any:
        found = await self.cache.get_or_compute(key, lambda: self.executor.run(lambda processor: work()))
        return found.value


@fails("PREPROCESSING-09", "PREPROCESSING-12", "PREPROCESSING-14")
def nothing_bounds_what_waits() -> bool:
    """However much waits for a worker, more is taken: there is no number of places. One worker and a half are taken, too."""

    async def ask() -> int:
        one, go = Background(), threading.Event()
        tasks = [asyncio.create_task(one.get(str(number), go.wait)) for number in range(200)]
        await asyncio.sleep(0.05)
        waiting = one.executor._executor._work_queue.qsize()
        go.set()
        await asyncio.gather(*tasks)
        one.executor.shutdown()
        return int(waiting)

    executor = cpu.module("sglang.srt.multimodal.processors.executor").MultimodalProcessorExecutor
    return asyncio.run(ask()) == 199 and executor(lambda: None, 1.5) is not None


@fails("PREPROCESSING-13")
def content_is_read_later() -> bool:
    """A snapshot of a picture is its digest: what is decoded later is the picture as it is by then. Lists have none."""
    identity = cpu.module("sglang.srt.multimodal.cache.identity")
    pixels = np.zeros((2, 2, 3), dtype=np.uint8)
    snapshot = identity.snapshot_media(pixels)
    pixels += 1
    later = identity.snapshot_media(pixels)
    return later.content_digest != snapshot.content_digest and error(lambda: identity.snapshot_media([pixels])) == "TypeError"


@fails("PREPROCESSING-20", "PREPROCESSING-21")
def abandoned_work_begins() -> bool:
    """Work that nobody waits for any more is begun nevertheless."""

    async def ask() -> list[str]:
        one, go = Background(), threading.Event()
        begun: list[str] = []
        first = asyncio.create_task(one.get("a", go.wait))
        second = asyncio.create_task(one.get("b", lambda: begun.append("b")))
        await asyncio.sleep(0.05)
        second.cancel()
        await asyncio.sleep(0.05)
        go.set()
        await first
        await asyncio.sleep(0.05)
        one.executor.shutdown()
        return begun

    return asyncio.run(ask()) == ["b"]


@fails("PREPROCESSING-28")
def a_stop_iteration_hangs() -> bool:
    """Work that raises a StopIteration never ends for those who wait: asyncio does not hand it on."""

    def stop() -> None:
        raise StopIteration

    async def ask() -> bool:
        one = Background()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        done, _ = await asyncio.wait([asyncio.create_task(one.get("a", stop))], timeout=0.3)
        one.executor.shutdown()
        return not done

    return asyncio.run(ask())


@fails("PREPROCESSING-29")
def shutting_down_runs_what_has_not_begun() -> bool:
    """A shutdown waits for the work that has not begun as well, and runs it."""
    one = Background()
    begun: list[int] = []
    run = one.executor._executor.submit

    def work(number: int) -> None:
        time.sleep(0.02)
        begun.append(number)

    for number in range(3):
        run(work, number)
    one.executor.shutdown()
    return begun == [0, 1, 2]


@fails("PREPROCESSING-35", "PREPROCESSING-36")
def results_are_shared() -> bool:
    """What is kept is handed out itself: who writes to it writes to what the next one gets."""

    async def ask() -> bool:
        one = Background()
        first = await one.get("a", lambda: torch.zeros(1))
        first += 1
        one.executor.shutdown()
        return bool((await one.get("a", lambda: torch.zeros(1))).item() == 1)

    return asyncio.run(ask())
