"""Whisper, Qwen2-Audio and Qwen's Omni models: a recording is resampled, cut to the window, and halved once or twice.

Source: transformers 5.24, `WhisperFeatureExtractor` (its attention mask has one entry for each `hop_length` samples,
the last one begun) and `_get_feat_extract_output_lengths` of Qwen2-Audio, Qwen2.5-Omni and Qwen3-Omni. Qwen2.5-Omni
counts like Qwen2-Audio, with a window of its own.
Disagreements: engines have counted samples before resampling, rounded up in 32-bit floats, which is off by one beyond
2**24 samples, and given a recording that is too short for any row one token all the same.
"""

from dataclasses import dataclass

from reference.planning.qwen_vl import ceil_divide
from reference.planning.settings import check


@dataclass(frozen=True, slots=True, kw_only=True)
class Whisper:
    """Whisper: every recording is padded or cut to the window. chunk_length: its seconds."""

    sampling_rate: int
    hop_length: int
    chunk_length: int

    def __post_init__(self) -> None:
        check(self)

    @property
    def window(self) -> int:
        """The most samples that are heard."""
        return self.chunk_length * self.sampling_rate

    def audio_tokens(self, samples: int, rate: int) -> int:
        """The encoder's rows, one for two hops: the same number for every recording."""
        return ceil_divide(self.window // self.hop_length, 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen2Audio(Whisper):
    """Qwen2-Audio: Whisper's encoder, of which only the part that holds sound is kept, at half its rate."""

    def audio_tokens(self, samples: int, rate: int) -> int:
        """The rows of the hops that hold sound: halved by a convolution (rounded up), then by pooling (rounded down)."""
        heard = min(ceil_divide(samples * self.sampling_rate, rate), self.window)
        return ceil_divide(ceil_divide(heard, self.hop_length), 2) // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Qwen3Omni:
    """Qwen3-Omni: no window; chunks of 2 * n_window hops are encoded one by one, and a hop that was begun does not count.

    It does count in transformers where a longer recording of the same prompt pads this one, so the recording is the only
    one of its prompt, or its longest.
    """

    sampling_rate: int
    hop_length: int
    n_window: int

    def __post_init__(self) -> None:
        check(self)

    def audio_tokens(self, samples: int, rate: int) -> int:
        """13 rows for each whole chunk, whatever its length; the hops of the rest are halved three times, rounded up."""
        hops = ceil_divide(samples * self.sampling_rate, rate) // self.hop_length
        chunks, rest = divmod(hops, 2 * self.n_window)
        return 13 * chunks + ceil_divide(rest, 8)
