"""What vLLM 0.33.0 gets wrong, seen without the suite.

`python -m conformance.adapters.vllm.check` prints one line a finding, with the requirements that it fails. Here are only
vLLM's own functions and inputs made by hand: no rule, no oracle and no translation of the suite has a part in it, so
that an entry in the list of known failures rests on more than the suite's word.
"""

import io
import os
import signal
import socket
import sys
import threading
import time
import wave
import zlib
from collections import Counter
from functools import partial
from importlib import import_module
from multiprocessing import resource_tracker
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import nn

from conformance.adapters.checks import Checks, error
from conformance.adapters.vllm import cpu

CHECKS = Checks()
fails = CHECKS.fails


def named(name: str) -> Any:
    """What `module:name` is in vLLM."""
    cpu.prepare()
    module, _, attribute = name.partition(":")
    return getattr(cpu.module(f"vllm.{module}"), attribute)


def hashed(content: Any, **options: Any) -> str:
    digest: str = named("multimodal.hasher:MultiModalHasher").hash_kwargs("blake3", model_id="model", image=content, **options)
    return digest


def column(*values: float) -> torch.Tensor:
    """Rows of one number each."""
    return torch.tensor(values)[:, None]


def feature(offset: int, length: int, identifier: str = "a", modality: str = "image", **data: Any) -> Any:
    """An item at these positions."""
    elem, field = named("multimodal.inputs:MultiModalFieldElem"), named("multimodal.inputs:MultiModalBatchedField")()
    values = {name: elem(data=value, field=field) for name, value in data.items()}
    return named("multimodal.inputs:MultiModalFeatureSpec")(
        data=named("multimodal.inputs:MultiModalKwargsItem")(values),
        modality=modality,
        identifier=identifier,
        mm_position=named("multimodal.inputs:PlaceholderRange")(offset, length),
    )


def runner(model: Any = None) -> Any:
    """An encoder runner whose cache is empty."""
    cache = named("v1.worker.gpu.mm.encoder_cache:EncoderCache")()
    made = named("v1.worker.gpu.mm.encoder_runner:EncoderRunner")
    return made(model, 1, 1, cache, torch.float32, torch.device("cpu"))


def scheduler(room: int) -> Any:
    """A scheduler, as far as it chooses what to encode, with room for so many embeddings."""
    owner = named("v1.core.sched.scheduler:Scheduler")
    made = owner.__new__(owner)
    made.is_encoder_decoder, made.ec_connector, made.encoder_cache_mismatch_reqs = False, None, set()
    made.scheduler_config = SimpleNamespace(disable_chunked_mm_input=False)
    made.encoder_cache_manager = named("v1.core.encoder_cache_manager:EncoderCacheManager")(room)
    return made


def request(*features: Any, id: str = "a", length: int = 4) -> Any:
    sampling = named("sampling_params:SamplingParams")(max_tokens=1)
    return named("v1.request:Request")(id, [5] * length, sampling, None, mm_features=list(features))


def gathered(rows: torch.Tensor, length: int) -> list[torch.Tensor]:
    """The rows of a prompt that is one picture of this length, whose encoder gave these."""
    one = runner()
    one.encoder_cache.add_request("request", [feature(0, length)])
    one.encoder_cache.encoder_outputs["a"] = rows
    numbers = np.array([length])
    found: list[torch.Tensor] = one.gather_mm_embeddings(["request"], length, numbers, np.array([0]), numbers, np.array([0]))[0]
    return found


def merged(rows: list[torch.Tensor], mask: list[bool], width: int = 1) -> list[Any]:
    """Zeros, with rows at the positions of a mask."""
    merge = named("model_executor.models.utils:_merge_multimodal_embeddings")
    values: list[Any] = merge(torch.zeros(len(mask), width), rows, torch.tensor(mask)).tolist()
    return values


def positions(family: str, ids: list[int], *features: Any, **vision: Any) -> tuple[list[list[int]], int]:
    """What a model numbers, with 2 patches each way in a token."""
    owner = named(f"model_executor.models.{family}")
    model = owner.__new__(owner)
    nn.Module.__init__(model)
    model.config = SimpleNamespace(
        vision_config=SimpleNamespace(spatial_merge_size=2, **vision),
        video_token_id=6,
        vision_start_token_id=9,
        vision_end_token_id=10,
        seconds_per_chunk=2,
    )
    triples, delta = model.get_mrope_input_positions(ids, list(features))
    return triples.tolist(), delta


def png(width: int, height: int, depth: int, colour: int, rows: bytes, key: bytes = b"") -> bytes:
    """A PNG; colour is 0 for grey and 2 for RGB, and `key` the colour that is transparent."""

    def chunk(name: bytes, body: bytes) -> bytes:
        return len(body).to_bytes(4) + name + body + zlib.crc32(name + body).to_bytes(4)

    header = width.to_bytes(4) + height.to_bytes(4) + bytes((depth, colour, 0, 0, 0))
    parts = [(b"IHDR", header), (b"tRNS", key), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts if part[1] or part[0] == b"IEND")


def pixels(data: bytes) -> list[Any]:
    """The pixels that a file is read as, row by row."""
    values: list[Any] = np.array(named("multimodal.media.image:ImageMediaIO")().load_bytes(data).media).tolist()
    return values


def wav(*samples: int, channels: int) -> io.BytesIO:
    """A recording of 16 bits, 16,000 samples a second, little-endian."""
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(2)
        writer.setframerate(16_000)
        writer.writeframes(np.array(samples, dtype="<i2").tobytes())
    return io.BytesIO(file.getvalue())


def heard(file: io.BytesIO) -> list[float]:
    """The samples of a recording through PyAV, at its own rate, as `AudioMediaIO` asks for them."""
    values: list[float] = named("multimodal.media.audio:load_audio")(file, sr=None, backend="pyav")[0].tolist()
    return values


def movie(frames: Any, codec: str = "rawvideo", container: str = "avi", rate: int = 25) -> bytearray:
    """A video with these frames, [n, height, width, 3]."""
    library: Any = import_module("av")
    file = io.BytesIO()
    with library.open(file, "w", format=container) as writer:
        stream = writer.add_stream(codec, rate=rate)
        stream.height, stream.width = frames.shape[1:3]
        stream.pix_fmt = "bgr24" if codec == "rawvideo" else "rgb24"
        for frame in frames:
            writer.mux(stream.encode(library.VideoFrame.from_ndarray(frame, format="rgb24")))
        writer.mux(stream.encode(None))
    return bytearray(file.getvalue())


def watched(data: bytes | bytearray, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The frames of a video through OpenCV, and what is known of it."""
    pictures = named("multimodal.media.image:ImageMediaIO")()
    loaded = named("multimodal.media.video:VideoMediaIO")(pictures, num_frames=-1, **options).load_bytes(bytes(data))
    frames, about = loaded.media
    return frames, about


def loader() -> Any:
    """A loader of pictures that gives the bytes that it gets."""
    base = named("multimodal.media.image:ImageMediaIO")
    return type("Bytes", (base,), {"load_bytes": lambda self, data: data})()


def connector(connection: Any = None, **settings: Any) -> Any:
    return named("multimodal.media.connector:MediaConnector")(connection=connection, **settings)


def served(url: str, *answers: tuple[int, str, bytes], **settings: Any) -> tuple[list[str], bytes]:
    """What is asked for, and what is loaded, when servers answer like this in turn: a status, where to go, and a body."""
    library: Any = import_module("requests")
    asked: list[str] = []

    class Servers(library.adapters.BaseAdapter):  # type: ignore[misc]
        def send(self, request: Any, **options: Any) -> Any:
            response = library.Response()
            response.status_code, location, body = answers[len(asked)]
            response.headers.update({"Location": location} if location else {})
            response.raw, response.url, response.request = io.BytesIO(body), request.url, request
            asked.append(request.url)
            return response

        def close(self) -> None:
            pass

    connection = named("connections:HTTPConnection")()
    connection.get_sync_client().mount("http://", Servers())
    return asked, connector(connection, **settings).load_from_url(url, loader())


def store(size: int, readers: int = 1) -> Any:
    """An object store of so many bytes in shared memory."""
    parts = "distributed.device_communicators.shm_object_storage"
    ring = named(f"{parts}:SingleWriterShmRingBuffer")(data_buffer_size=size, create=True)
    serde = named(f"{parts}:MsgpackSerde")
    return named(f"{parts}:SingleWriterShmObjectStorage")(
        max_object_size=size, n_readers=readers, ring_buffer=ring, serde_class=serde
    )


def proposed(*ids: int) -> list[int]:
    """What is proposed behind these ids: up to four that followed one to three of the last ones."""
    lookup = named("v1.spec_decode.ngram_proposer:_find_longest_matched_ngram_and_propose_tokens")
    proposals: list[int] = lookup(np.array(ids, dtype=np.int32), 1, 3, 100, 4).tolist()
    return proposals


FRAMES = np.random.default_rng(0).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
REFUSED = "VLLMValidationError"
QWEN2 = "qwen2_vl:Qwen2VLForConditionalGeneration"
QWEN2_5 = "qwen2_5_vl:Qwen2_5_VLForConditionalGeneration"
QWEN3 = "qwen3_vl:Qwen3VLForConditionalGeneration"
GLM = "glm4_1v:Glm4vForConditionalGeneration"
QWEN2_5_OMNI = "qwen2_5_omni_thinker:Qwen2_5OmniThinkerForConditionalGeneration"
PROCESSOR = "qwen2_5_omni_thinker:Qwen2_5OmniThinkerMultiModalProcessor"


@fails("MEDIA-05")
def transparent_grey() -> bool:
    """Grey of 2 bits whose darker half is transparent shows no background: Pillow has scaled the grey, and not the key."""
    return pixels(png(2, 1, 2, 0, b"\0\x70", key=b"\0\1")) == [[[85] * 3, [255] * 3]]


@fails("MEDIA-07")
def sixteen_bits() -> bool:
    """Grey of 16 bits is cut off at 255: all but the darkest 256th of it is white."""
    return pixels(png(2, 1, 16, 0, b"\0\x01\x00\x80\x00")) == [[[255] * 3, [255] * 3]]


@fails("MEDIA-09")
def damaged_pictures() -> bool:
    """A damaged picture is black from the damage on: turning it reads it, its error is suppressed, and Pillow has but one."""
    data = bytearray(png(3, 2, 8, 2, b"\0\xff\0\0\0\xff\0\0\0\xff\0" + b"\xff" * 9))
    data[-20] ^= 0xFF
    picture = named("multimodal.image:open_image")(io.BytesIO(data))
    return error(picture.load) == "OSError" and pixels(bytes(data))[1] == [[0] * 3] * 3


@fails("MEDIA-10")
def missing_rows() -> bool:
    """A picture of two rows, of which one is there, is black in the other."""
    return pixels(png(1, 2, 8, 2, b"\0\1\2\3")) == [[[1, 2, 3]], [[0, 0, 0]]]


@fails("MEDIA-16", "MEDIA-31")
def data_in_base64_alone() -> bool:
    """A data URI that is percent-encoded, or says BASE64, is refused, with an error that is no ValueError."""
    urls = ("data:,a", "data:;BASE64,YQ==")
    return {error(partial(connector().load_from_url, url, loader())) for url in urls} == {"NotImplementedError"}


@fails("MEDIA-19")
def any_address() -> bool:
    """Whatever address stands in a URL is connected to, and no name is looked up before a connection is made."""
    inside = ("http://127.0.0.1/cat", "http://169.254.169.254/cat", "http://[::ffff:10.0.0.1]/cat")
    return [served(url, (200, "", b"secret")) for url in inside] == [([url], b"secret") for url in inside]


@fails("MEDIA-20")
def redirects_unchecked() -> bool:
    """Where a URL redirects is not looked at: to a host that is not allowed, 30 times, and nowhere."""
    away, inside = (302, "http://10.0.0.1/cat", b""), (200, "", b"secret")
    urls, content = served("http://media.example/cat", away, inside, allowed_media_domains=["media.example"])
    many = served("http://media.example/", *[(302, "http://media.example/", b"")] * 30, inside)
    return (urls[1], content) == ("http://10.0.0.1/cat", b"secret") and len(many[0]) == 31


@fails("MEDIA-21")
def odd_urls() -> bool:
    """URLs with user names, backslashes, line breaks and numbers for hosts are fetched."""
    odd = ("http://media.example@inside.example/", "http://inside.example\\@media.example/", "http://2130706433/")
    return [served(url, (200, "", b"a"))[1] for url in odd] == [b"a"] * 3


@fails("MEDIA-22")
def ports_and_no_hosts() -> bool:
    """An empty list of hosts is none, and any port of a host is allowed."""
    asked = served("http://media.example:22/cat", (200, "", b"a"), allowed_media_domains=[])
    return asked == (["http://media.example:22/cat"], b"a")


@fails("MEDIA-24", "MEDIA-29")
def files_and_data_of_any_length() -> bool:
    """The limit of a download is none of a data URI, and none of a file."""
    envs = cpu.module("vllm.envs")
    with TemporaryDirectory() as folder, patch.object(envs, "VLLM_MAX_MEDIA_DOWNLOAD_SIZE_MB", 2**-20, create=True):
        (Path(folder) / "cat").write_bytes(b"cat")
        load = connector(allowed_local_media_path=folder).load_from_url
        sizes = [len(load(url, loader())) for url in (f"file://{folder}/cat", "data:;base64,Y2F0")]
        return sizes == [3, 3] and error(lambda: served("http://media.example/", (200, "", b"cat"))) != ""


@fails("MEDIA-25")
def parts_of_media() -> bool:
    """A part of a medium, status 206, is taken for the whole."""
    return served("http://media.example/cat", (206, "", b"c"))[1] == b"c"


@fails("MEDIA-26")
def drop_by_drop() -> bool:
    """The time limit is one of each read: a server that sends a byte now and then is waited for."""
    with socket.create_server(("127.0.0.1", 0)) as door:

        def serve() -> None:
            with door.accept()[0] as link:
                link.recv(4096)
                for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789":
                    time.sleep(0.01)
                    link.sendall(bytes([byte]))

        threading.Thread(target=serve, daemon=True).start()
        connection = named("connections:HTTPConnection")()
        connection.get_sync_client().trust_env = False
        started = time.monotonic()
        content = connection.get_bytes(f"http://127.0.0.1:{door.getsockname()[1]}/", timeout=0.1)
    return bool(content == b"123456789" and time.monotonic() - started > 0.3)


@fails("MEDIA-30", "MEDIA-31")
def errors_of_files_and_servers() -> bool:
    """What is wrong with a file or a server is told as it happens: a RuntimeError, an IsADirectoryError, a HTTPError."""
    with TemporaryDirectory() as folder:
        (Path(folder) / "deep").mkdir()
        load = connector(allowed_local_media_path=folder).load_from_url
        errors = [error(lambda: connector().load_from_url("file:///cat", loader()))]
        errors += [error(lambda: load(f"file://{folder}/deep", loader()))]
    with patch.object(cpu.module("vllm.envs"), "VLLM_MEDIA_FETCH_MAX_RETRIES", 1, create=True):
        errors += [error(lambda: served("http://media.example/cat", (500, "", b"")))]
    return errors == ["RuntimeError", "IsADirectoryError", "HTTPError"]


@fails("MEDIA-37")
def nothing_to_show() -> bool:
    """Of a video without frames the first one is shown; a rate of 0 or below counts as none."""
    decoders = "multimodal.video_decoders"
    source, target = named(f"{decoders}:VideoSourceMetadata"), named(f"{decoders}:VideoTargetMetadata")
    sample = named("multimodal.video:VideoBackend").compute_frames_index_to_sample
    rates = [sample(source(2, 1.0, 2.0), target(num_frames=-1, fps=rate, max_duration=9)) for rate in (0, -2)]
    return sample(source(0, 1.0, 0.0), target(num_frames=8, fps=2, max_duration=9)) == [0] and rates == [[0, 1]] * 2


@fails("MEDIA-44")
def times_by_number() -> bool:
    """A frame's time is its number by the mean rate: of when a file shows its frames nothing is kept."""
    _, about = watched(movie(FRAMES))
    info = named("model_executor.models.qwen3_vl:Qwen3VLProcessingInfo")
    known = {"total_num_frames", "fps", "duration", "video_backend", "frames_indices", "do_sample_frames"}
    times: list[float] = info._calculate_timestamps(None, [0, 1, 50], 25.0, 1)
    return set(about) <= known and times == [0.0, 0.04, 2.0]


@fails("MEDIA-45")
def mirrored_films() -> bool:
    """A display matrix that mirrors is followed as one that turns: left and right changed, a film is upside down as well."""
    film = movie(FRAMES, "qtrle", "mov")
    start = film.index(b"tkhd") + 44

    def shown(a: int, d: int) -> Any:
        numbers = (a, 0, 0, 0, d, 0, 0, 0, 1 << 14)
        film[start : start + 36] = b"".join((number << 16).to_bytes(4, signed=True) for number in numbers)
        return watched(film)[0]

    return all(bool((shown(-1, d) == FRAMES[:, ::-1, ::-1]).all()) for d in (-1, 1))


@fails("MEDIA-46")
def frames_that_a_header_claims() -> bool:
    """Of a video whose header claims one frame, one is shown."""
    film = movie(FRAMES)
    for place in (film.index(b"avih") + 24, film.index(b"strh") + 40):
        film[place : place + 4] = (1).to_bytes(4, "little")
    frames, about = watched(film)
    return (len(frames), about["total_num_frames"]) == (1, 1)


@fails("MEDIA-47")
def pictures_as_videos() -> bool:
    """A still picture is a video of one frame."""
    return len(watched(png(2, 2, 8, 2, bytes([0, 1, 2, 3, 4, 5, 6] * 2)))[0]) == 1


@fails("MEDIA-48")
def frames_that_are_not_there() -> bool:
    """Of a video of three frames that ends within the last one two are shown, and three counted."""
    film = movie(FRAMES)
    frames, about = watched(film[: film.index(b"idx1") - FRAMES[0].size // 2])
    return (len(frames), about["total_num_frames"], about["duration"]) == (2, 3, 3 / 25)


@fails("MEDIA-50")
def videos_of_any_length() -> bool:
    """A video of three seconds is shown, though one second is the limit; there is none for the frames of the source."""
    return len(watched(movie(FRAMES, rate=1), max_duration=1)[0]) == 3


@fails("MEDIA-53", "MEDIA-58", "MEDIA-59", "MEDIA-61")
def integers_as_they_are() -> bool:
    """Through PyAV a recording of 16 bits that needs no other rate is 32,768 times too loud."""
    return heard(wav(0, 16_384, -32_768, channels=1)) == [0.0, 16_384.0, -32_768.0]


@fails("MEDIA-54", "MEDIA-55")
def channels_one_after_another() -> bool:
    """Through PyAV two channels of a WAV are one that lasts twice as long."""
    return heard(wav(1, 2, 3, 4, channels=2)) == [1.0, 2.0, 3.0, 4.0]


@fails("MEDIA-66")
def big_endian_recordings() -> bool:
    """Through PyAV a sample of 1 in a big-endian WAV, RIFX, is one of 256."""
    sizes = [(38).to_bytes(4), b"WAVEfmt ", (16).to_bytes(4), *(part.to_bytes(2) for part in (1, 1))]
    sizes += [(16_000).to_bytes(4), (32_000).to_bytes(4), (2).to_bytes(2), (16).to_bytes(2)]
    return heard(io.BytesIO(b"".join([b"RIFX", *sizes, b"data", (2).to_bytes(4), (1).to_bytes(2)]))) == [256.0]


@fails("MEDIA-62")
def not_a_number() -> bool:
    """A recording with a NaN is parsed without a word."""
    parser = named("multimodal.parse:MultiModalDataParser")(target_sr=16_000)
    samples = np.array([0.0, np.nan], dtype=np.float32)
    return bool(np.isnan(parser.parse_mm_data({"audio": [(samples, 16_000)]})["audio"].get(0)[1]))


@fails("IDENTITY-01", "IDENTITY-18")
def gradients() -> bool:
    """A tensor with a gradient cannot be hashed, for it is hashed through numpy."""
    return error(lambda: hashed(torch.zeros(2, requires_grad=True))) == "RuntimeError"


@fails("IDENTITY-02")
def byte_order() -> bool:
    """Arrays of equal values have two hashes when one is stored big-endian."""
    return hashed(np.ones(2, dtype="<f4")) != hashed(np.ones(2, dtype=">f4"))


@fails("IDENTITY-07", "IDENTITY-18")
def eight_bit_floats() -> bool:
    """A tensor of float8 cannot be hashed, for numpy does not know it."""
    return error(lambda: hashed(torch.zeros(2).to(torch.float8_e4m3fn))) == "TypeError"


@fails("IDENTITY-11")
def kinds() -> bool:
    """An embedding has the hash of a picture of the same numbers; only their numbers of dimensions keep them apart."""
    parse = named("multimodal.parse:MultiModalDataParser")().parse_mm_data
    inputs = named("multimodal.processing.inputs:ProcessorInputs")
    embedding, picture = torch.ones(2, 2), torch.ones(3, 2, 2)
    items = [parse({"image": [one]}) for one in (embedding, picture)]
    kinds = [type(data["image"]).__name__ for data in items]
    hashes = [inputs([], data).get_mm_hashes("model", "blake3")["image"][0] for data in items]
    return kinds == ["ImageEmbeddingItems", "ImageProcessorItems"] and hashes == [hashed(embedding), hashed(picture)]


@fails("IDENTITY-13", "PREPROCESSING-06")
def option_order() -> bool:
    """The same options in another order have another hash."""
    one, other = ({"fps": 1, "min_pixels": 4}, {"min_pixels": 4, "fps": 1})
    return hashed(b"", mm_processor_kwargs=one) != hashed(b"", mm_processor_kwargs=other)


@fails("IDENTITY-19")
def nothing() -> bool:
    """What is missing has a hash, as an item and as a part of one."""
    return len(hashed(None)) == len(hashed([np.ones(2), None])) == 64


@fails("PROCESSORS-03")
def tiles_of_neighbours() -> bool:
    """A picture of LLaVA-OneVision has as many tiles as the one of its prompt with the most, and is cached with them."""
    owner = named("model_executor.models.llava_onevision:LlavaOnevisionMultiModalProcessor")
    given = {"pixel_values": torch.zeros(2, 5, 3, 1, 1), "image_sizes": torch.zeros(2, 2)}  # as it is padded by transformers
    items = named("multimodal.inputs:MultiModalKwargsItems").from_hf_inputs(given, owner._get_mm_fields_config(None, given, {}))
    return [len(one["pixel_values"].data) for one in items["image"]] == [5, 5]


@fails("PROCESSORS-06", "PROCESSORS-07")
def first_of_two_placeholders() -> bool:
    """A picture goes to the first placeholder of a prompt, and if a user wrote that one, the picture's own stays behind."""
    update = named("multimodal.processing.processor:PromptReplacement")("image", target=[7], replacement=[7, 7, 7])
    put = named("multimodal.processing.processor:_apply_token_matches_with_placeholders")
    ids, _, placeholders = put([7, 65, 7], {"image": [[update.resolve(0)]]})
    return bool(ids == [7, 7, 7, 65, 7] and placeholders["image"][0].start_idx == 0)


@fails("PROCESSORS-24")
def models_that_fail_to_load() -> bool:
    """Which module failed to be imported, and why, stands in the log, and not in the error."""
    registry = named("model_executor.models.registry:_ModelRegistry")()
    registry.register_model("AlphaForCausalLM", "nowhere_to_be_found:Model")
    try:
        registry.resolve_model_cls(["AlphaForCausalLM"], SimpleNamespace(model_impl="vllm"))
    except ValueError as raised:
        return "AlphaForCausalLM" in str(raised) and "nowhere_to_be_found" not in str(raised)
    return False


@fails("POSITIONS-08")
def glm_asserts() -> bool:
    """A picture without a grid is an assertion, which `python -O` takes away."""
    return error(lambda: positions(GLM, [5], feature(0, 1))) == "AssertionError"


@fails("POSITIONS-09")
def grid_of_another_picture() -> bool:
    """A picture of two positions with a grid of one: what is left of it is numbered as text."""
    triples, _ = positions(QWEN2, [5, 5], feature(0, 2, image_grid_thw=torch.tensor([1, 2, 2])))
    return triples == [[0, 1]] * 3


@fails("POSITIONS-11")
def frames_by_their_tokens() -> bool:
    """Frames are looked for by the start tokens before them, and are not found without."""
    video = feature(0, 2, modality="video", video_grid_thw=torch.tensor([2, 2, 2]))
    return error(lambda: positions(QWEN3, [6, 6], video)) == "ValueError"


@fails("POSITIONS-12")
def seconds_by_default() -> bool:
    """A video without seconds has one second a frame."""
    video = feature(0, 2, modality="video", video_grid_thw=torch.tensor([2, 2, 2]))
    triples, _ = positions(QWEN2_5, [6, 6], video, tokens_per_second=4)
    return triples[0] == [0, 4]


@fails("POSITIONS-24")
def recordings_by_number() -> bool:
    """The recording in a video is the first of the prompt, wherever it stands; more recordings than videos are refused."""
    owner = named(f"model_executor.models.{QWEN2_5_OMNI}")
    behind = feature(1, 2, "b", "audio", audio_feature_lengths=torch.tensor(24))
    film = feature(1, 2, "c", "video", use_audio_in_video=torch.tensor(True))
    before = feature(0, 1, "a", "audio", audio_feature_lengths=torch.tensor(8))
    return bool(owner._get_audio_for_video_mapping(None, [before, film, behind]) == ({1: 8}, {0}))


@fails("POSITIONS-25")
def start_token_in_a_video() -> bool:
    """The start token of a recording in a video takes the first frame's number, and each row that of the row before it."""
    grid, flag = torch.tensor([1, 2, 4]), torch.tensor(True)
    film = feature(0, 5, "a", "video", video_grid_thw=grid, use_audio_in_video=flag)
    sound = feature(0, 5, "b", "audio", audio_feature_lengths=torch.tensor(4))
    put = named(f"model_executor.models.{PROCESSOR}").omni_get_updates_use_audio_in_video
    config = SimpleNamespace(
        audio_token_index=4, video_token_index=6, audio_start_token_id=11, audio_end_token_id=12, seconds_per_chunk=2,
        vision_config=SimpleNamespace(spatial_merge_size=2),
    )  # fmt: skip
    ids = put(config, 1, grid, 1.0)
    triples, _ = positions(QWEN2_5_OMNI, ids, film, sound)
    return ids == [11, 6, 6, 4, 12] and triples == [[0, 0, 0, 2, 3], [0, 0, 0, 2, 3], [0, 1, 0, 2, 3]]


@fails("SCHEDULING-11")
def whole_items_of_any_prefix() -> bool:
    """Where items are whole, a model whose largest item is longer than a step is refused, whatever prefix is cached."""
    settings = SimpleNamespace(disable_chunked_mm_input=True, max_num_batched_tokens=4)
    budget = named("v1.core.encoder_cache_manager:compute_mm_encoder_budget")
    return error(lambda: budget(settings, {"image": 5})) == "ValueError"


@fails("SCHEDULING-12")
def waiting_for_ever() -> bool:
    """Two items that interleave and fit into the encoder cache one by one, but not together, are scheduled never."""
    both = [feature(0, 4, "a"), feature(0, 4, "b")]
    for one, mask in zip(both, ([True, False, True, False], [False, True, False, True]), strict=True):
        one.mm_position = named("multimodal.inputs:PlaceholderRange")(0, 4, is_embed=torch.tensor(mask))
    _, tokens, *_ = scheduler(3)._try_schedule_encoder_inputs(request(*both), 0, 4, 100)
    return bool(tokens == 0)


@fails("ENCODING-04")
def lengths() -> bool:
    """Rows are cut out of whatever the encoder gave, one too few or one too many."""
    return [len(gathered(column(*range(rows)), 3)[0]) for rows in (2, 4)] == [2, 3]


@fails("ENCODING-17", "ENCODING-18")
def one_item_fails_the_step() -> bool:
    """A row too few for one picture is an error of the step, with all its requests; a row too many is dropped."""
    short = error(lambda: merged([column(1.0), column(2.0, 3.0)], [True] * 4))
    return short == "ValueError" and gathered(column(1.0, 2.0, 9.0), 2)[0].flatten().tolist() == [1.0, 2.0]


@fails("ENCODING-18", "ENCODING-19")
def an_encoder_fails_the_step() -> bool:
    """An error of the encoder is one of the step; results that are missing are an assertion."""

    def broken(**_: Any) -> Any:
        raise RuntimeError

    item = feature(0, 1, pixels=torch.zeros(1)).data
    raised = error(lambda: runner(SimpleNamespace(embed_multimodal=broken)).execute_mm_encoder([("image", item)]))
    missing = runner(SimpleNamespace(embed_multimodal=lambda **_: []))
    return (raised, error(lambda: missing.execute_mm_encoder([("image", item)]))) == ("RuntimeError", "AssertionError")


@fails("PRUNING-02")
def rate_in_binary() -> bool:
    """A tenth of twenty tokens is one."""
    return bool(named("multimodal.video_prune.evs:compute_retained_tokens_count")(1, 20, 0.9) == 1)


@fails("PRUNING-05")
def zeros_in_half_precision() -> bool:
    """Zeros in half precision have no cosine, and nothing is sorted before the first frame but what is no number."""
    video = torch.ones(3, 1, dtype=torch.float16)
    video[1] = 0
    mask = named("multimodal.video_prune.evs:compute_retention_mask")(video, (3, 1, 1), 1, 0.5)
    return mask.tolist()[0] is False


@fails("LIFECYCLE-26", "LIFECYCLE-32", "LIFECYCLE-37")
def one_request_fails_all() -> bool:
    """Rows of a whole step are merged at once: a request that lacks some is an error of all; a single row is put to all."""
    lacking = error(lambda: merged([column(1.0, 2.0), column(3.0, 4.0, 5.0)], [True] * 6))
    return lacking == "ValueError" and merged([column(1.0)], [True, True]) == [[1.0], [1.0]]


@fails("ENCODING-28", "ENCODING-29")
def sparse_embeddings() -> bool:
    """A sparse embedding that is passed as a tensor runs into an operator that there is not; from a file it is made dense."""
    rows = column(1.0, 0.0).to_sparse()
    dense = named("utils.sparse_utils:safe_to_dense")(rows, parameter="image_embeds")
    return error(lambda: gathered(rows, 2)) == "NotImplementedError" and dense.layout is torch.strided


@fails("MERGING-06")
def one_row_for_all() -> bool:
    """One row is put to every position of media."""
    return merged([column(7.0)], [True, False, True]) == [[7.0], [0.0], [7.0]]


@fails("MERGING-07")
def one_column_for_all() -> bool:
    """Rows of one column are put to every column."""
    return merged([column(7.0, 8.0)], [True, True], width=2) == [[7.0, 7.0], [8.0, 8.0]]


@fails("MERGING-18")
def one_row_for_none() -> bool:
    """A row for which there is no position is dropped without a word."""
    return merged([column(7.0)], [False, False]) == [[0.0], [0.0]]


@fails("SPECULATION-02")
def items_that_interleave() -> bool:
    """Rows of two items that interleave are gathered item by item; by position only the Omni models merge them."""
    one, masks = runner(), ([True, False, True, False], [False, True, False, True])
    both = [feature(0, 4, name) for name in "ab"]
    for item, mask in zip(both, masks, strict=True):
        item.mm_position = named("multimodal.inputs:PlaceholderRange")(0, 4, is_embed=torch.tensor(mask))
    one.encoder_cache.add_request("request", both)
    one.encoder_cache.encoder_outputs.update(a=column(1.0, 3.0), b=column(2.0, 4.0))
    four, none = np.array([4]), np.array([0])
    rows, places = one.gather_mm_embeddings(["request"], 4, four, none, four, none)
    return merged(rows, places.tolist()) == [[1.0], [3.0], [2.0], [4.0]]


@fails("SPECULATION-06")
def any_sampled_id() -> bool:
    """A drafter takes whatever was sampled, -1 as well, and the look-up in its table runs into an IndexError."""
    owner = named("v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer")
    proposer = owner.__new__(owner)
    proposer.input_ids = torch.zeros(1, dtype=torch.int32)
    ids = proposer.prepare_next_token_ids_cpu([[-1]], {}, SimpleNamespace(req_ids=["request"]), {})
    return ids.tolist() == [-1] and error(lambda: nn.Embedding(2, 1)(ids)) == "IndexError"


@fails("SPECULATION-09")
def drafts_behind_a_picture() -> bool:
    """Behind a picture at the end of a prompt drafts stand one after its time, on all axes, and not behind its rows."""
    owner = named("v1.spec_decode.llm_base_proposer:SpecDecodeBaseProposer")
    one = owner.__new__(owner)
    one.uses_mrope, one.max_model_len, one._slot_mapping_buffer = True, 100, torch.zeros(1)
    one.mrope_positions = torch.tensor([[5], [7], [5]])  # a picture of three rows that begins at 5; the next text is at 8
    about = SimpleNamespace(block_table_tensor=None, seq_lens=None, max_seq_len=0, seq_lens_cpu_upper_bound=None)

    def kernel(positions_1d: Any, out_clamped_positions: Any, **others: Any) -> None:
        out_clamped_positions.copy_(positions_1d + 1)  # as eagle_step_slot_mapping_metadata_kernel does it, in Triton

    module = cpu.module("vllm.v1.spec_decode.llm_base_proposer")
    with patch.object(module, "eagle_step_update_slot_mapping_and_metadata", kernel):
        moved = one._update_positions_dependent_metadata(one.mrope_positions.clone(), about, 1, 1, 1)
    return bool(moved.flatten().tolist() == [6, 6, 6])


@fails("SPECULATION-13", "SPECULATION-14")
def placeholders_are_proposed() -> bool:
    """Placeholders that followed the last words are proposed like words."""
    return proposed(60, 61, 62, 5, 5, 5, 99, 60, 61) == [62, 5, 5, 5]


@fails("SPECULATION-15")
def pictures_are_looked_up() -> bool:
    """Words around one picture are found around another, for the placeholders are alike."""
    return proposed(60, 5, 5, 61, 62, 99, 60, 5, 5, 61) == [62, 99, 60, 5]


@fails("SPECULATION-16")
def a_picture_behind_the_match() -> bool:
    """The longest match counts, though a picture stands behind it, and not the shorter one that has text behind it."""
    return proposed(60, 61, 5, 5, 61, 83, 99, 60, 61)[0] == 5


@fails("PARALLEL-26")
def an_encoder_that_fails_alone() -> bool:
    """An encoder that raises on one rank never comes to where the others wait for its rows."""
    vision, waited = cpu.module("vllm.model_executor.models.vision"), list[Any]()

    def encoder(*given: Any) -> Any:
        raise OSError

    vars(encoder).update(spatial_merge_size=1, out_hidden_size=1, parameters=lambda: iter([torch.zeros(0)]))
    ranks: dict[str, Any] = {"get_tensor_model_parallel_world_size": lambda: 2, "get_tensor_model_parallel_rank": lambda: 0}
    with patch.multiple(vision, tensor_model_parallel_all_gather=waited.append, **ranks):
        run = partial(
            vision.run_dp_sharded_mrope_vision_model, encoder, torch.zeros(2, 1), [[1, 1, 1]] * 2, rope_type="rope_3d"
        )
        return error(run) == "OSError" and not waited


@fails("PARALLEL-32")
def reports_that_come_again() -> bool:
    """A report that comes again takes back what was sent to its engine meanwhile: the greater of the two counts, not both."""

    def chosen(again: bool) -> list[int]:
        one = object.__new__(named("v1.engine.core_client:DPLBAsyncMPClient"))
        vars(one).update(client_count=1, eng_start_index=0, core_engines=[0, 1], reqs_in_flight={}, streaming_reqs=set())
        vars(one).update(engine_inflight=Counter(), lb_engines=[[0, 2, 0.0], [0, 1, 0.0]])
        given: dict[str, Any] = {"resumable": False, "data_parallel_rank": None, "pooling_params": None}
        first = one.get_core_engine_for_request(SimpleNamespace(request_id="a", **given))
        one.lb_engines[1] = [0, 1, 0.0] if again else one.lb_engines[1]
        one.eng_start_index = 0
        return [first, one.get_core_engine_for_request(SimpleNamespace(request_id="b", **given))]

    return chosen(again=False) == [1, 0] and chosen(again=True) == [1, 1]


@fails("TRANSPORT-31")
def conjugates() -> bool:
    """A tensor that is conjugated by a flag cannot be sent, neither through shared memory nor inline."""
    sent = named("v1.serial_utils:MsgpackEncoder")().encode
    return error(lambda: sent(torch.tensor([1 + 1j]).conj())) == "RuntimeError"


@fails("TRANSPORT-45")
def pickled_values() -> bool:
    """What is no tensor is pickled into the shared memory, an iterator too, and read by no one."""
    one = store(1 << 12)
    try:
        address, number = one.put("key", iter(()))
        return bool(number == 0 and address >= 0)
    finally:
        one.close()


@fails("TRANSPORT-46")
def stores_for_nobody() -> bool:
    """A store for no reader is opened."""
    one = store(1 << 12, readers=0)
    one.close()
    return bool(one.n_readers == 0)


@fails("TRANSPORT-57")
def left_in_shared_memory() -> bool:
    """What a process that was killed had in shared memory stays there, whoever opens a store afterwards."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        one = store(1 << 12)
        os.write(writing, one.ring_buffer.shared_memory.name.encode())
        os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    left = Path("/dev/shm") / os.read(reading, 99).decode()
    store(1 << 12).close()
    found = left.exists()
    left.unlink()
    resource_tracker.unregister(f"/{left.name}", "shared_memory")
    return found


@fails("TRANSPORT-59")
def readers_that_are_gone() -> bool:
    """A value waits for as many readers as there were: when one of two is gone, its place is never free."""
    one, value = store(1 << 12, readers=2), torch.zeros(1024, dtype=torch.uint8)
    try:
        for number in range(3):
            one.put(str(number), value)
        return error(lambda: one.put("more", value)) == "MemoryError"
    finally:
        one.close()


if __name__ == "__main__":
    sys.exit(CHECKS.run())
