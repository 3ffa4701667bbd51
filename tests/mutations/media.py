"""Mutations of `media`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("a byte order is looked at", "media/audio", "    check_byte_order(data)\n", "", "MEDIA-66"),
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
]
