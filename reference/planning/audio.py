"""Whisper and Qwen2-Audio: a recording is resampled, cut to the window, and halved once or twice.

Source: transformers 5.24, `WhisperFeatureExtractor` (its attention mask has one entry for each `hop_length` samples,
the last one begun) and `_get_feat_extract_output_lengths` of Qwen2-Audio.
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
