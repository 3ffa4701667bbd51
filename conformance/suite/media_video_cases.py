"""Films for the rules about decoding video, and how they are to be shown."""

from fractions import Fraction
from typing import NamedTuple

from conformance.protocol.media import VideoLimits
from conformance.world.films import (
    Film,
    boasting_film,
    film,
    grey_film,
    noise,
    piped_film,
    turned_film,
    uneven_film,
)
from conformance.world.picture_files import jpeg
from conformance.world.recordings import recording

ENOUGH = VideoLimits(1 << 20, 1000, 100.0)
TELEVISION = Fraction(30_000, 1001)


class Showing(NamedTuple):
    """A film, how many frames are to be shown for each second, and how many at most."""

    film: Film
    rate: float | None = None
    max_frames: int = 768

    def __str__(self) -> str:
        return f"{len(self.film.frames)} frames at {self.film.fps}, of which at most {self.max_frames} at {self.rate}"


class Limited(NamedTuple):
    """A film file and limits."""

    data: bytes
    limits: VideoLimits


class Turned(NamedTuple):
    """A film with a display matrix, and the EXIF orientation that means the same."""

    film: Film
    orientation: int


SHORT = {
    "one-frame": Showing(film(1)),
    "one-frame-by-rate": Showing(film(1), 2.0),
    "less-than-a-sample": Showing(film(10), 1.0),
    "three-frames": Showing(film(3)),
    "five-frames": Showing(film(5, "mkv")),
    "seven-frames": Showing(film(7, "mov")),
}
SAMPLED = {
    "four-of-ten": Showing(film(10, fps=Fraction(5)), None, 4),
    "two-a-second": Showing(film(32, fps=Fraction(8)), 2.0),
    "ten-a-second": Showing(film(30), 10.0),
    "capped": Showing(film(30), 10.0, 5),
    "television": Showing(film(31, "mkv", TELEVISION), 6.0),
    "cinema": Showing(film(24, "mkv", Fraction(24)), None, 7),
    "slow": Showing(film(6, "avi", Fraction(1, 2)), 0.25),
    "just-one": Showing(film(30), None, 1),
}
WHOLE = {f"whole-{coding}": Showing(film(11, coding)) for coding in ("mp4", "mov", "mkv", "avi")} | {
    "odd-sides": Showing(film(4, "mkv", width=23, height=13)),
    "one-row": Showing(film(4, "avi", width=32, height=1)),
    "three-rows": Showing(film(3, "avi", width=32, height=3)),
}
PLAYED = SHORT | SAMPLED | WHOLE

REORDERED = {
    "four-frames": Showing(grey_film(4, "mpeg4")),
    "eleven-frames": Showing(grey_film(11, "mpeg4")),
    "transport-stream": Showing(grey_film(11, "ts")),
    "sampled": Showing(grey_film(11, "mpeg4"), None, 4),
}
TURNED = {str(orientation): Turned(turned_film(3, orientation), orientation) for orientation in range(1, 9)}

PHONE = (0, 33, 67, 400, 433, 1000)
UNEVEN = {
    "phone-mp4": Showing(uneven_film(PHONE)),
    "phone-mkv": Showing(uneven_film(PHONE, "mkv")),
    "slides": Showing(uneven_film((0, 1000, 1040, 3000, 5000))),
    "sampled": Showing(uneven_film(PHONE), None, 3),
}
MOMENTS = {"phone-mp4": PHONE, "phone-mkv": PHONE, "slides": (0, 1000, 1040, 3000, 5000), "sampled": PHONE}
SHOWN_AT = {name: (showing, MOMENTS[name]) for name, showing in UNEVEN.items()}

MISCOUNTED = {f"claims-{claimed}": Showing(boasting_film(11, claimed)) for claimed in (0, 3, 12, 100_000)} | {
    "sampled-of-too-few": Showing(boasting_film(11, 3), None, 4),
    "sampled-of-too-many": Showing(boasting_film(11, 100), None, 4),
    "says-nothing": Showing(piped_film(11)),
    "says-nothing-sampled": Showing(piped_film(11), None, 4),
}

MP4, AVI = film(11).data, film(11, "avi").data
NONE = {
    "empty": b"",
    "text": b"not a film at all, but some words\n" * 20,
    "page": b"<!doctype html><title>404</title>" * 10,
    "picture": jpeg(24, 16),
    "recording": recording([[0]] * 2000).data,
    "signature-alone": MP4[:32],
    "header-cut-off": film(11, "mkv").data[:100],
    "index-cut-off": MP4[: len(MP4) * 2 // 3],
    "playlist": b"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:1,\nfile:///etc/hostname\n#EXT-X-ENDLIST\n",
    "list-of-files": b"ffconcat version 1.0\nfile /etc/hostname\n",
    "noise": noise(1, 64, 64).tobytes(),
    "no-frames": boasting_film(1, 0).data[: AVI.index(b"movi") - 8],
}
CUT_OFF = {
    f"{coding}-{percent}": Film(one.data[: len(one.data) * percent // 100], one.frames, one.fps)
    for coding in ("mkv", "avi")
    for percent in (60, 80, 95)
    for one in (film(11, coding),)
}

TOO_MUCH = {
    "a-row-too-many": Limited(film(3, width=22, height=15).data, VideoLimits(22 * 14, 1000, 100.0)),
    "a-pixel-too-few": Limited(MP4, VideoLimits(22 * 14 - 1, 1000, 100.0)),
    "avi": Limited(AVI, VideoLimits(22 * 14 - 1, 1000, 100.0)),
    "mkv": Limited(film(11, "mkv").data, VideoLimits(22 * 14 - 1, 1000, 100.0)),
}
TOO_LONG = {
    "frames": Limited(MP4, VideoLimits(1 << 20, 10, 100.0)),
    "frames-that-no-header-counts": Limited(piped_film(11).data, VideoLimits(1 << 20, 10, 100.0)),
    "frames-behind-a-small-claim": Limited(boasting_film(11, 3).data, VideoLimits(1 << 20, 10, 100.0)),
    "seconds": Limited(film(6, "avi", Fraction(1, 2)).data, VideoLimits(1 << 20, 1000, 9.0)),
    "seconds-of-slides": Limited(uneven_film((0, 1000, 1040, 3000, 5000)).data, VideoLimits(1 << 20, 1000, 4.0)),
}
JUST_FITS = {
    "mp4": Limited(MP4, VideoLimits(22 * 14, 11, 1.0)),
    "mkv": Limited(film(11, "mkv").data, VideoLimits(22 * 14, 11, 1.0)),
    "a-line": Limited(film(4, "avi", width=32, height=1).data, VideoLimits(32, 4, 1.0)),
}
