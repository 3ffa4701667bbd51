"""What the turns of LIFECYCLE are tried on."""

from dataclasses import replace

import numpy as np

from conformance.oracles.lifecycle_turns import BOS, Join, join, modalities, padding, tables, written
from conformance.world.mrope import GLM4V, QWEN2_5_VL, QWEN2_VL, QWEN3_VL, bare, image, video

TEXTS = {
    "two-turns": join("...", "..", "...."),
    "no-reply": join("..iii.", "", "..."),
    "first-turn": join("", "", "..ii."),
    "a-reply-of-placeholders": join("..ii.", ".##.", ".jj."),
    "nothing-new": join("..ii.", "..", ""),
}
PICTURES = {
    "behind-text": join(".....", "...", ".iii."),
    "behind-a-picture": join(".iiii.", "...", "..jj."),
    "behind-a-picture-without-a-reply": join(".iiii.", "", "..jj."),
    "at-the-seams": join("..iii", "", "jj.."),
    "the-same-picture-again": join(".iii.", "..", ".iii."),
    "frames": join(".vv.vv.", ".", ".ww.ww.w"),
    "all-modalities": join(".ii.vv.aa", "..", "bb.jj.ww."),
    "three-pictures-and-one": join(".ii.jj.kk.", ".....", "...i."),
    "a-typed-placeholder": join(".#.ii", "#", "#.jj"),
}
STRIPPED = {
    "text": join("<...", "..", "<..", bos=BOS),
    "picture": join("<.ii.", "..", "<.jjj.", bos=BOS),
    "picture-first": join("<ii", ".", "<jj", bos=BOS),
    "frames": join("<vv.vv", "", "<ww.ww", bos=BOS),
    "nothing-else": join("<.ii.", "..", "<", bos=BOS),
}
UNSTRIPPED = {
    "first-turn": join("", "", "<.ii.", bos=BOS),
    "no-such-token": join("..ii.", "..", ".jj.", bos=BOS),
    "twice": join("<..", ".", "<<.jj", bos=BOS),
    "within-the-turn": join("<..", ".", ".<.jj", bos=BOS),
    "in-the-reply": join("<..", ".<.", ".jj", bos=BOS),
    "not-asked-for": join("<..", ".", "<.jj"),
    "no-history-kept": join("<..", ".", "<.jj", keep=0, bos=BOS),
}
CUT = {
    "all-of-it": join(".ii.", "..", ".jj.", keep=6),
    "a-part-of-the-reply": join(".ii.", "....", ".jj.", keep=6),
    "the-reply": join(".ii.", "..", ".jj.", keep=4),
    "a-picture": join(".ii.jj.", "..", ".kk.", keep=3),
    "up-to-a-picture": join(".ii.jj.", "..", ".kk.", keep=4),
    "frames": join(".ii.vv.vv.", "..", ".kk.", keep=3),
    "everything": join(".ii.", "..", ".jj.", keep=0),
    "and-stripped": join("<.ii.jj.", "..", "<.kk.", keep=4, bos=BOS),
}
DIVIDED = {
    "the-first-position": join("..iiii.", ".", ".jj.", keep=3),
    "the-last-position": join("..iiii.", ".", ".jj.", keep=5),
    "between-frames": join(".ii.vv.vv.", ".", ".jj.", keep=6),
    "within-a-frame": join(".ii.vv.vv.", ".", ".jj.", keep=8),
}
BEYOND = {"negative": join("..ii.", ".", "..", keep=-1), "more-than-there-is": join("..ii.", ".", "..", keep=7)}

_UNDER_BOS = join("<..", ".", "ii.", bos=11)
ON_BOS = {
    "picture": _UNDER_BOS,
    "picture-of-one": join("<..", ".", "i..", bos=11),
    "frames": join("<..", ".", "vv.vv", bos=12),
}

P23, P32 = image(2, 3), image(3, 2)
CONVERSATIONS = {
    "text": (QWEN2_VL, written(QWEN2_VL, [3], 2, [4])),
    "picture-behind-text": (QWEN2_VL, written(QWEN2_VL, [3], 2, [1, P23, 1])),
    "picture-behind-picture": (QWEN2_VL, written(QWEN2_VL, [1, P23, 1], 3, [2, P32, 2])),
    "no-reply": (QWEN2_VL, written(QWEN2_VL, [1, P23], 0, [P32, 1])),
    "history-ends-with-a-wide-picture": (QWEN2_VL, written(QWEN2_VL, [1, image(1, 7)._replace(ended=False)], 2, [P23, 1])),
    "video": (QWEN2_VL, written(QWEN2_VL, [1, video(5, 1, 2)], 2, [video(2, 2, 2), 2])),
    "timed-video": (QWEN2_5_VL, written(QWEN2_5_VL, [1, video(3, 1, 2, 0.5)], 2, [video(2, 2, 2, 2.0), 2])),
    "frames-apart": (QWEN3_VL, written(QWEN3_VL, [1, video(2, 2, 2)], 2, [video(2, 1, 3), 2])),
    "glm": (GLM4V, written(GLM4V, [1, video(2, 2, 2), P23], 2, [P32, 2])),
    "first-turn": (QWEN2_VL, written(QWEN2_VL, [], 0, [1, P23, 2])),
}
"""Layouts, and what is joined; nothing is cut."""

_CUT = written(QWEN2_VL, [2, P23, 2, P32, 3], 4, [1, image(2, 2), 1], keep=11)
_STRIPPED = written(QWEN2_VL, [2, P23, 2], 4, [2, image(2, 2), 1], bos=1)
TABLES = {name: tables(layout, case) for name, (layout, case) in CONVERSATIONS.items()}
GAPS = {
    "a-turn-of-text-between": tables(QWEN2_VL, written(QWEN2_VL, [1, P23, 1], 17, [2, P32, 2])),
    "no-table-before": tables(QWEN2_VL, written(QWEN2_VL, [5], 3, [1, P23]), 0),
    "reply-in-the-table": tables(QWEN2_VL, written(QWEN2_VL, [1, P23, 1], 3, [P32]), 13),
    "a-part-of-the-reply-in-the-table": tables(QWEN2_VL, written(QWEN2_VL, [1, P23, 1], 3, [P32]), 11),
    "cut-behind-a-picture": tables(QWEN2_VL, _CUT),
    "cut-in-the-reply": tables(QWEN2_VL, written(QWEN2_VL, [1, P23, 1], 6, [P32], keep=12)),
}
STRIPPED_TABLES = {
    "picture": tables(QWEN2_VL, _STRIPPED),
    "text": tables(QWEN2_VL, written(QWEN2_VL, [2, P23], 1, [3], bos=1)),
    "nothing-else": tables(QWEN2_VL, written(QWEN2_VL, [2, P23], 1, [1], bos=1)),
    "timed-video": tables(QWEN2_5_VL, written(QWEN2_5_VL, [2, P23], 3, [1, video(3, 1, 2, 0.5), 2], bos=1)),
    "no-reply": tables(QWEN2_VL, written(QWEN2_VL, [2, P23], 0, [1, P32, 1], bos=1)),
    "behind-a-picture": tables(QWEN2_VL, written(QWEN2_VL, [2, bare(P23)], 0, [1, P32, 1], bos=1)),
}
MODALITIES = {
    **{name: modalities(case) for name, case in (PICTURES | CUT).items()},
    **{f"{name}-stripped": modalities(case) for name, case in STRIPPED.items()},
    "a-part-of-the-history-is-known": modalities(join("..ii....", "...", ".aa"), 4),
    "nothing-is-known": modalities(join("......", "...", ".aa"), 0),
}

PADDINGS = {
    "made-anew": padding(join(".iii.", "..", ".jjjjj.")),
    "the-same-picture-again": padding(join(".iii.", "..", ".iiii")),
    "frames": padding(join(".vv.vv.", ".", ".ww.www")),
    "a-typed-placeholder": padding(join(".i", "#", "#.jj.#")),
    "text": padding(join(".iii.", "..", "...")),
    "first-turn": padding(join("", "", ".iiiii.")),
}
REUSED = {
    "of-this-turn": padding(join(".iii.", "..", ".jjjjj."), ".jjjjj."),
    "of-a-first-turn": padding(join("", "", ".iiiii."), ".iiiii."),
}
STALE = {
    "of-the-turn-before": padding(join(".iii.", "..", ".jjjjj."), ".iii."),
    "with-a-token-that-was-stripped": padding(join("<iii.", "..", "<.jjjjj.", bos=BOS), "<.jjjjj."),
    "of-the-whole": padding(join(".iii.", "..", ".jj."), ".iii.....jj."),
    "none-at-all": padding(join(".iii.", "..", ".jj."), ""),
}


def _marked(case: Join) -> Join:
    """The question with content and fields in the items, to be found again."""
    history, turn = (
        replace(one, items=tuple(replace(item, feature=np.arange(3.0), fields={"mark": item.spans}) for item in one.items))
        for one in (case.history, case.turn)
    )
    return case._replace(history=history, turn=turn)


CARRIED = {name: _marked(case) for name, case in PICTURES.items()}
