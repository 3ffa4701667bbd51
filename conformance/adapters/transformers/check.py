"""What transformers 5.24.0 gets wrong, seen without the suite.

`python -m conformance.adapters.transformers.check` prints one line a finding, with the requirements that it fails. Here are
only transformers' own functions and inputs made by hand: no rule, no oracle and no translation of the suite has a part in
it, so that an entry in the list of known failures rests on more than the suite's word.
"""

import struct
import sys
import warnings
import wave
import zlib
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import av
import numpy as np
import PIL.Image
import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.transformers.cpu import bare, named, prepare

CHECKS = Checks()
fails = CHECKS.fails


def picture(data: bytes) -> Any:
    return named("image_utils:load_image")(b64encode(data).decode())


def saved(image: Any, format: str = "PNG", **options: Any) -> bytes:
    data = BytesIO()
    image.save(data, format, **options)
    return data.getvalue()


def film(folder: str, name: str, frames: int = 3) -> str:
    """A film of frames that are white above and grey below."""
    path = str(Path(folder) / name)
    with av.open(path, "w") as container:
        stream = container.add_stream("mpeg4", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 16, "yuv420p"
        for number in range(frames):
            shown = np.full((16, 32, 3), 20 * number, np.uint8)
            shown[:8] = 255
            container.mux(stream.encode(av.VideoFrame.from_ndarray(shown, format="rgb24")))
        container.mux(stream.encode())
    return path


def recording(samples: int, rate: int = 8) -> str:
    data = BytesIO()
    with wave.open(data, "wb") as file:
        file.setparams((1, 2, rate, samples, "NONE", ""))
        file.writeframes(bytes(2 * samples))
    return b64encode(data.getvalue()).decode()


def sampled(frames: int, own_rate: float, **options: Any) -> list[int]:
    metadata = named("video_utils:VideoMetadata")(total_num_frames=frames, fps=own_rate)
    numbers: list[int] = prepare().Qwen2VLVideoProcessor().sample_frames(metadata, **options).tolist()
    return numbers


def numbered(family: str, model: str, kinds: list[int], **grids: Any) -> tuple[list[list[int]], int]:
    """What a model numbers, with 2 patches each way in a token, and 4 tokens a second."""
    owner = named(f"models.{family}.modeling_{family}:{model}")
    vision = SimpleNamespace(spatial_merge_size=2, tokens_per_second=4)
    made = bare(owner, config=SimpleNamespace(vision_config=vision))
    grids = {name: torch.tensor(values) for name, values in grids.items()}
    triples, delta = made.get_rope_index(torch.tensor([kinds]), torch.tensor([kinds]), **grids)
    return triples[:, 0].tolist(), int(delta)


QWEN2 = ("qwen2_vl", "Qwen2VLModel")


def words() -> Any:
    """A tokenizer of bytes that knows the tokens of Qwen's and of Llava's media."""
    letters = {letter: byte for byte, letter in named("convert_slow_tokenizer:bytes_to_unicode")().items()}
    made = prepare().Qwen2Tokenizer(vocab=letters, merges=[])
    made.add_special_tokens({"additional_special_tokens": ["<|image_pad|>", "<|video_pad|>", "<image>", "<|AUDIO|>"]})
    return made


def qwen2() -> Any:
    """A processor of pictures and videos."""
    return prepare().Qwen2VLProcessor(prepare().Qwen2VLImageProcessorPil(), words(), prepare().Qwen2VLVideoProcessor())


def looked_up(ids: list[int], longest: int = 3, count: int = 4) -> list[int]:
    """What prompt lookup proposes behind these ids."""
    owner = named("generation.candidate_generator:PromptLookupCandidateGenerator")
    made = owner(num_output_tokens=count, max_matching_ngram_size=longest, max_length=len(ids) + count + 1)
    proposals: list[int] = made.get_candidates(torch.tensor([ids]))[0][0, len(ids) :].tolist()
    return proposals


@fails("MEDIA-04")
def hidden_colours() -> bool:
    """A transparent pixel shows the colour that was stored under it."""
    return bool(np.asarray(picture(saved(PIL.Image.new("RGBA", (1, 1), (200, 0, 0, 0))))).tolist() == [[[200, 0, 0]]])


@fails("MEDIA-05", "MEDIA-07")
def sixteen_bits() -> bool:
    """A grey of 16 bits is cut off at 255, so that dark grey is white."""
    grey = PIL.Image.fromarray(np.array([[5000]], dtype=np.uint16))
    return bool(np.asarray(picture(saved(grey))).tolist() == [[[255, 255, 255]]])


@fails("MEDIA-10")
def rows_filled_up() -> bool:
    """A PNG whose stream is well-formed but short is filled up with black."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 2, 8, 0, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\xff")) + chunk(b"IEND", b"")
    return bool(np.asarray(picture(data))[:, 0, 0].tolist() == [255, 0])


@fails("MEDIA-11")
def too_many_pixels() -> bool:
    """There is no limit of pixels but Pillow's, which only warns of up to twice as many."""
    with patch.object(PIL.Image, "MAX_IMAGE_PIXELS", 100), warnings.catch_warnings(action="ignore"):
        return bool(picture(saved(PIL.Image.new("L", (10, 11)))).size == (10, 11))


@fails("MEDIA-13")
def memory_address() -> bool:
    """The refusal of what is no picture shows a memory address."""
    try:
        picture(b"text")
    except ValueError as refusal:
        return " at 0x" in str(refusal)
    return False


@fails("MEDIA-32", "MEDIA-34", "MEDIA-36", "MEDIA-38", "MEDIA-40", "MEDIA-41", "MEDIA-42", "MEDIA-43")
def one_frame() -> bool:
    """A video of one frame cannot be sampled by rate: one is rounded down to none, by which is divided."""
    return error(lambda: sampled(1, 25.0, fps=2)) == "ZeroDivisionError"


@fails("MEDIA-37")
def rates_that_are_none() -> bool:
    """A rate of 0 and a video without frames are a division by zero, or frames."""
    return (error(lambda: sampled(100, 0.0, fps=2)), error(lambda: sampled(0, 25.0, fps=2))) == ("ZeroDivisionError",) * 2


@fails(
    "MEDIA-38", "MEDIA-39", "MEDIA-40", "MEDIA-41", "MEDIA-42", "MEDIA-43", "MEDIA-46", "MEDIA-47", "MEDIA-48", "MEDIA-51"
)  # fmt: skip
def frames_that_no_header_counts() -> bool:
    """A film whose header does not say how many frames it has (Matroska) is an IndexError, through PyAV."""
    with TemporaryDirectory() as folder:
        path = film(folder, "film.mkv")
        return error(lambda: named("video_utils:load_video")(path)) == "IndexError"


@fails("MEDIA-44")
def times_of_a_mean_rate() -> bool:
    """The times of frames are their numbers divided by the mean rate, whatever the film says of each frame."""
    metadata = named("video_utils:VideoMetadata")(total_num_frames=3, fps=10.0, frames_indices=[0, 1, 2])
    return bool(metadata.timestamps == [0.0, 0.1, 0.2])


@fails("MEDIA-45")
def not_turned() -> bool:
    """The frames of a film that its display matrix turns upside down are as they are stored."""
    whole, turned = (struct.pack(">9i", one, 0, 0, 0, one, 0, 0, 0, 1 << 30) for one in (1 << 16, -(1 << 16)))
    with TemporaryDirectory() as folder:
        path = Path(film(folder, "film.mp4"))
        plain, _ = named("video_utils:load_video")(str(path))
        data = path.read_bytes()
        place = data.rindex(whole)
        path.write_bytes(data[:place] + turned + data[place + 36 :])
        with av.open(str(path)) as container:
            asked = abs(next(container.decode(video=0)).rotation)
        shown, _ = named("video_utils:load_video")(str(path))
    return asked == 180 and bool((shown == plain).all())


@fails("MEDIA-49", "MEDIA-50", "MEDIA-63")
def no_limits() -> bool:
    """The loaders of videos and recordings take no limit: of pixels, frames or seconds."""
    loaders = [named(name).__code__ for name in ("video_utils:read_video_pyav", "audio_utils:load_audio")]
    return not any("max" in name or "limit" in name for code in loaders for name in code.co_varnames)


@fails("MEDIA-52")
def errors_of_the_decoder() -> bool:
    """What is no video is PyAV's own error, with the path of the file."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "film"
        path.write_text("text")
        try:
            named("video_utils:load_video")(str(path))
        except Exception as raised:
            return type(raised).__module__.startswith("av") and folder in str(raised)
    return False


@fails("MEDIA-53", "MEDIA-54")
def no_matroska() -> bool:
    """A recording in Matroska is refused where torchcodec is not installed, although PyAV is."""
    return error(lambda: named("audio_utils:load_audio")("recording.mkv", backend="soundfile")) == "RuntimeError"


@fails("MEDIA-60")
def no_samples() -> bool:
    """A recording without samples is empty, and not refused."""
    return len(named("audio_utils:load_audio")(recording(0), sampling_rate=8, backend="soundfile")) == 0


@fails("MEDIA-62")
def no_numbers() -> bool:
    """A recording with a sample that is no number is taken."""
    data = np.array([0.0, np.nan], dtype="<f4").tobytes()
    head = struct.pack(
        "<4sI4s4sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVE", b"fmt ", 16, 3, 1, 8, 32, 4, 32, b"data", len(data)
    )
    loaded = named("audio_utils:load_audio")(b64encode(head + data).decode(), sampling_rate=8, backend="soundfile")
    return bool(np.isnan(loaded[1]))


@fails("MEDIA-65")
def errors_of_libsndfile() -> bool:
    """What is no recording is an error of libsndfile, and no ValueError."""
    text = b64encode(b"text").decode()
    return error(lambda: named("audio_utils:load_audio")(text, backend="soundfile")) == "LibsndfileError"


@fails("PLANNING-07", "PLANNING-08")
def another_formula() -> bool:
    """The size formula of Idefics3 and SmolVLM counts other tiles than their processor cuts.

    That is so where the longest edge is no multiple of a tile.
    """

    def is_another(kind: Any) -> bool:
        made = kind(size={"longest_edge": 700}, max_image_size={"longest_edge": 256}, do_pad=False)
        planned, *_ = made.get_number_of_image_patches(100, 70)
        cut = made(images=[torch.zeros(3, 100, 70, dtype=torch.uint8)], return_tensors="pt")["pixel_values"]
        return bool(planned != cut.shape[1])

    return is_another(prepare().Idefics3ImageProcessor) and is_another(prepare().SmolVLMImageProcessor)


@fails("PLANNING-15")
def one_row_of_pixtral() -> bool:
    """The plan of Pixtral takes a picture of one row for one of three columns, and scales others to nothing."""
    resized = named("models.pixtral.image_processing_pixtral:get_resize_output_image_size")
    wide, tall = (resized(np.zeros((*size, 3)), (1024, 1024), (16, 16)) for size in ((1, 2000), (4000, 2)))
    return bool(wide == (1024, 16) and tall == (1024, 0))


@fails("PLANNING-17")
def unknown_settings() -> bool:
    """A processor takes settings that it does not have, and a smallest number of pixels of 0."""
    made = prepare().Qwen2VLImageProcessor(max_pixel=4, min_pixels=0)
    return bool(made.size["longest_edge"] > 4 and made.size["shortest_edge"] == 0)


@fails("PLANNING-26")
def videos_without_frames() -> bool:
    """A video without frames has no patches, and one of fewer than none has fewer than none."""
    counts = [prepare().Qwen2VLVideoProcessor().get_num_of_video_patches(frames, 100, 100, {}) for frames in (0, -2)]
    return bool(counts[0] == 0 > counts[1])


@fails("PLANNING-32")
def recordings_without_samples() -> bool:
    """A recording without samples is padded to the window, and has no tokens."""
    heard = prepare().WhisperFeatureExtractor()(np.zeros(0, np.float32), sampling_rate=16_000, return_attention_mask=True)
    return int(heard["attention_mask"].sum()) == 0


@fails("PLANNING-35")
def pan_and_scan() -> bool:
    """The plan of Gemma 3 knows no pan and scan."""
    made = bare(prepare().Gemma3Processor, image_seq_length=256, image_processor=SimpleNamespace(do_pan_and_scan=True))
    return bool(made._get_num_multimodal_tokens(image_sizes=[(300, 1000)]).num_image_tokens == [256])


@fails("POSITIONS-01", "POSITIONS-07")
def text_behind_a_long_video() -> bool:
    """Five frames of one token are numbered 0 to 4, and the text behind them goes on at 1."""
    triples, _ = numbered(*QWEN2, [2, 2, 2, 2, 2, 0], video_grid_thw=[[5, 2, 2]])
    return triples[0] == [0, 1, 2, 3, 4, 1]


@fails("POSITIONS-08", "POSITIONS-10")
def out_of_grids() -> bool:
    """Two runs of placeholders with one grid are a StopIteration."""
    return error(lambda: numbered(*QWEN2, [1, 0, 1], image_grid_thw=[[1, 2, 2]])) == "StopIteration"


@fails("POSITIONS-09")
def grids_that_make_up_for_each_other() -> bool:
    """A picture of one token with a grid of two, and one of two with a grid of one, are numbered by these grids."""
    triples, _ = numbered(*QWEN2, [1, 0, 1, 1], image_grid_thw=[[1, 2, 4], [1, 2, 2]])
    return triples[2] == [0, 1, 2, 3]


@fails("POSITIONS-11")
def pictures_that_touch() -> bool:
    """Two pictures without a token between them are one run, for which there are positions of the first alone."""
    return error(lambda: numbered(*QWEN2, [1] * 4, image_grid_thw=[[1, 2, 4], [1, 2, 4]])) == "RuntimeError"


@fails("POSITIONS-12")
def seconds_by_default() -> bool:
    """A video without seconds has one second a frame."""
    triples, _ = numbered("qwen2_5_vl", "Qwen2_5_VLModel", [2, 2], video_grid_thw=[[2, 2, 2]])
    return triples[0] == [0, 4]


@fails("POSITIONS-24")
def text_behind_the_piece_that_comes_last() -> bool:
    """Behind a video of six rows and its recording of one token, text goes on at the recording's number."""
    owner = named("models.qwen3_omni_moe.modeling_qwen3_omni_moe:Qwen3OmniMoeThinkerForConditionalGeneration")
    tokens = {"image": 1, "video": 2, "audio": 3, "vision_start": 4, "audio_start": 5}
    config = SimpleNamespace(**{f"{name}_token_id": number for name, number in tokens.items()}, position_id_per_seconds=4)
    config.audio_config = SimpleNamespace(n_window=50)
    ids = torch.tensor([[4, 5, *[2] * 6, 3, 3, 6, 7, 0]])
    triples, _ = bare(owner, config=config, spatial_merge_size=2).get_rope_index(
        ids, None, torch.tensor([[1, 12, 2]]), torch.ones_like(ids), True, torch.tensor([16]), torch.tensor([1.0])
    )
    return bool(triples[0, 0, 10] < triples[:, 0, :10].max() + 1)


@fails("MERGING-04")
def typed_placeholders() -> bool:
    """A placeholder that a user typed is one of a picture, so that its rows are too few."""
    model = bare(named("models.qwen2_vl.modeling_qwen2_vl:Qwen2VLModel"))
    model.config = SimpleNamespace(image_token_id=1, video_token_id=2)
    mask = model.get_placeholder_mask
    return (
        error(lambda: mask(torch.tensor([[1, 0, 1]]), torch.zeros(1, 3, 1), image_features=torch.zeros(1, 1))) == "ValueError"
    )


@fails("MERGING-09")
def ids_outside_the_table() -> bool:
    """An id outside the vocabulary is an IndexError of the embedding."""
    return error(lambda: torch.nn.Embedding(4, 1)(torch.tensor([4]))) == "IndexError"


@fails("MERGING-17")
def one_column_for_all() -> bool:
    """Deepstack features of one column are added to every column."""
    model = bare(named("models.qwen3_vl.modeling_qwen3_vl:Qwen3VLTextModel"))
    added = model._deepstack_process(torch.zeros(1, 1, 2), torch.tensor([[True]]), torch.tensor([[7.0]]))
    return bool(added.tolist() == [[[7.0, 7.0]]])


@fails("MERGING-18")
def rows_of_recordings_uncounted() -> bool:
    """Rows of pictures and videos are counted before they are merged, rows of recordings are not: the last are dropped."""
    model = bare(named("models.qwen3_omni_moe.modeling_qwen3_omni_moe:Qwen3OmniMoeThinkerModel"))
    model.config = SimpleNamespace(image_token_id=1, video_token_id=2, audio_token_id=3)
    ids, embeds, rows = torch.tensor([[3, 3]]), torch.zeros(1, 2, 1), torch.tensor([[1.0], [2.0], [3.0]])
    picture = error(lambda: model.get_placeholder_mask(torch.ones_like(ids), embeds, image_features=rows))
    *_, mask = model.get_placeholder_mask(ids, embeds)  # nobody passes the rows of recordings
    merged = embeds.masked_scatter(mask, rows)  # as `forward` does
    return picture == "ValueError" and bool(merged.flatten().tolist() == [1.0, 2.0])


@fails("PLANNING-41")
def capped_frames_uncounted() -> bool:
    """With a cap on the pixels of a frame Qwen2-VL's videos are made smaller, and are counted as they would be without."""
    limits = {"min_pixels": 56 * 56, "max_pixels": 280 * 280, "max_video_tokens": 64, "do_sample_frames": False}
    capped = prepare().Qwen2VLVideoProcessor(cap_pixels_per_frame=True, **limits)
    made = capped(videos=[torch.zeros(8, 3, 280, 280, dtype=torch.uint8)], return_tensors="pt")["video_grid_thw"].prod()
    return bool(capped.get_num_of_video_patches(8, 280, 280, {}) == 4 * 20 * 20 > int(made))


@fails("PROCESSORS-03")
def a_picture_beside_a_video() -> bool:
    """A picture of four tiles and the whole, and a video of two frames for SmolVLM: there are rows of the frames alone."""
    size = {"size": {"longest_edge": 56}, "max_image_size": {"longest_edge": 28}}
    pictures, films = (
        prepare().SmolVLMImageProcessorPil(**size),
        prepare().SmolVLMVideoProcessor(**size, do_sample_frames=False),
    )
    tokenizer = words()
    tokenizer.add_special_tokens({"additional_special_tokens": ["<video>"]}, replace_extra_special_tokens=False)
    made = prepare().SmolVLMProcessor(pictures, tokenizer, films, image_seq_len=4)(
        text=["<image><video>"],
        images=[PIL.Image.new("RGB", (56, 56))],
        videos=[np.zeros((2, 56, 56, 3), np.uint8)],
        videos_kwargs={"video_metadata": [{"fps": 2.0, "total_num_frames": 2, "frames_indices": [0, 1]}]},
        return_tensors="pt",
    )
    placeholders = int((made["input_ids"] == tokenizer.convert_tokens_to_ids("<image>")).sum())
    return placeholders == (5 + 2) * 4 and made["pixel_values"].shape[:2] == (1, 2)


@fails("PROCESSORS-04", "PROCESSORS-05")
def no_ids() -> bool:
    """A processor takes text alone: ids of a prompt, with a picture among them or not, are a ValueError."""
    return error(lambda: qwen2()(text=[[65, 66]])) == "ValueError"


@fails("PROCESSORS-19")
def media_without_content() -> bool:
    """A video without frames has a grid of none and no token, and a recording without samples has no token."""
    made = qwen2()(
        text=["<|video_pad|>"],
        videos=[np.zeros((0, 56, 56, 3), np.uint8)],
        videos_kwargs={"do_sample_frames": False, "video_metadata": [{"fps": 2.0, "total_num_frames": 0}]},
    )
    sound = prepare().Qwen2AudioProcessor(prepare().WhisperFeatureExtractor(feature_size=8, chunk_length=1), words())
    heard = sound(text=["<|AUDIO|>"], audio=[np.zeros(0, np.float32)], audio_kwargs={"sampling_rate": 16_000})
    return bool(made["video_grid_thw"][0][0] == 0 and len(made["input_ids"][0]) == 0 == len(heard["input_ids"][0]))


@fails("PROCESSORS-20")
def media_of_another_kind() -> bool:
    """A video for Llava, and a recording for Qwen2-VL, are left out without a word."""
    llava = prepare().LlavaProcessor(
        prepare().CLIPImageProcessorPil(), words(), patch_size=14, vision_feature_select_strategy="default"
    )
    shown = llava(text=["A"], videos=[np.zeros((2, 28, 28, 3), np.uint8)])
    heard = qwen2()(text=["A"], audio=[np.zeros(900, np.float32)])
    return all(set(made) <= {"input_ids", "attention_mask", "mm_token_type_ids"} for made in (shown, heard))


@fails("PROCESSORS-21")
def pictures_for_a_tokenizer() -> bool:
    """A tokenizer takes pictures as further arguments, and leaves them out."""
    return set(words()(text=["A"], images=[PIL.Image.new("RGB", (28, 28))])) == {"input_ids", "attention_mask"}


@fails("KERNELS-29")
def times_section_is_not_read() -> bool:
    """Where axes take turns, sections of 9 frequencies in all turn one frequency: that of time is not looked at."""
    rotary = bare(named("models.qwen3_vl.modeling_qwen3_vl:Qwen3VLTextRotaryEmbedding"), mrope_section=[9, 0, 0])
    turned = rotary.recomposition_frequencies(torch.tensor([1.0, 2, 3]).reshape(3, 1, 1, 1))
    return bool(turned.tolist() == [[[1, 1]]])


@fails("SPECULATION-13", "SPECULATION-14", "SPECULATION-16")
def placeholders_proposed() -> bool:
    """Prompt lookup proposes the placeholders (here 9) of a picture that followed the last words before."""
    return looked_up([1, 2, 9, 9, 9, 3, 1, 2]) == [9, 9, 9, 3]


@fails("SPECULATION-15")
def placeholders_matched() -> bool:
    """Prompt lookup takes the placeholders (here 9) of two pictures for the same words."""
    return looked_up([1, 9, 9, 2, 3, 4, 9, 9], longest=2) == [2, 3, 4, 9]


@fails("SPECULATION-14", "SPECULATION-16")
def no_shortest_match() -> bool:
    """Prompt lookup has no shortest match: one word that occurred before is enough."""
    options = named("generation.candidate_generator:PromptLookupCandidateGenerator").__init__.__code__.co_varnames
    return looked_up([1, 2, 3, 4, 2]) == [3, 4, 2] and not any("min" in name for name in options)


if __name__ == "__main__":
    sys.exit(CHECKS.run())
