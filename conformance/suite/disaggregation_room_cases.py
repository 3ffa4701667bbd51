"""Cases of the rules about rooms: scripts as in `conformance.oracles.disaggregation_rooms`."""

from collections.abc import Mapping

from conformance.oracles.disaggregation_rooms import Script, script

ONE = {"a": ".iii.jj."}
TO_ITS_END = "post; finish 7; post; poll"
HANDED: Mapping[str, Script] = {
    "the-decode-first": script(ONE, "expect 7 a; begin 7 a; finish 7; post; poll"),
    "the-prefill-first": script(ONE, "begin 7 a; finish 7; post; expect 7 a; post; poll"),
    "ready-before-it-began": script(ONE, "expect 7 a; post; begin 7 a; finish 7; post; poll"),
    "from-behind": script(ONE, "begin 7 a; expect 7 a; post; store 7 3; store 7 2; finish 7; back; poll"),
    "metadata-last": script(
        ONE, "begin 7 a; expect 7 a; post; store 7 3; post; poll; store 7 9; post; poll; finish 7; post; poll"
    ),
    "ready-in-the-middle": script(ONE, "begin 7 a; store 7 3; expect 7 a; post; store 7 1; back; finish 7; back; poll"),
    "everything-twice": script(ONE, "begin 7 a; expect 7 a; post; finish 7; post; replay; replay; poll; replay; poll"),
    "a-chunk-a-position": script(ONE, "begin 7 a; expect 7 a; post", *["store 7 1"] * 8, "finish 7; back; poll"),
    "text": script({"a": "..."}, "begin 7 a; expect 7 a; post; finish 7; post; poll"),
    "two-rooms-alternating": script(
        {"a": ".iii.", "b": ".jjj."},
        "begin 7 a; begin 8 b; expect 8 b; expect 7 a; store 7 2; store 8 3; post; finish 8; finish 7; back; poll",
    ),
}
NUMBERS: Mapping[str, Script] = {
    "room-zero": script(ONE, "begin 0 a; expect 0 a; post; finish 0; post; poll"),
    "the-largest-room": script(ONE, f"begin {2**63 - 1} a; expect {2**63 - 1} a; post; finish {2**63 - 1}; post; poll"),
    "rooms-that-begin-alike": script(
        {"a": ".i", "b": ".jj", "c": ".kkk"},
        "begin 1 a; begin 10 b; begin 101 c; expect 10 b; expect 1 a; expect 101 c; post; finish 10; post; poll",
        "drop 1; post; poll; finish 101; post; poll",
    ),
    "rooms-a-power-of-two-apart": script(
        {"a": ".i", "b": ".jj"},
        f"begin 5 a; begin {5 + 2**32} b; expect {5 + 2**32} b; expect 5 a; post; finish 5; finish {5 + 2**32}; back; poll",
    ),
}
ABORTS: Mapping[str, Script] = {
    "by-the-prefill-before-the-decode": script(ONE, "begin 7 a; drop 7; post; expect 7 a; post; poll"),
    "by-the-prefill-before-its-rows": script(ONE, "begin 7 a; expect 7 a; post; drop 7; post; poll"),
    "by-the-prefill-in-the-middle": script(ONE, "begin 7 a; expect 7 a; post; store 7 4; post; drop 7; post; poll"),
    "by-the-prefill-with-ready-on-its-way": script(ONE, "begin 7 a; expect 7 a; store 7 4; drop 7; back; poll"),
    "by-the-decode-before-the-prefill": script(ONE, "expect 7 a; leave 7; post; begin 7 a; post; poll"),
    "by-the-decode-before-the-rows": script(ONE, "begin 7 a; expect 7 a; post; leave 7; post; poll"),
    "by-the-decode-in-the-middle": script(ONE, "begin 7 a; expect 7 a; post; store 7 4; post; leave 7; store 7 1; back; poll"),
    "by-the-decode-heard-before-ready": script(ONE, "begin 7 a; expect 7 a; leave 7; back; poll"),
    "by-both": script(ONE, "begin 7 a; expect 7 a; post; store 7 4; leave 7; drop 7; post; poll"),
    "twice": script(ONE, "begin 7 a; expect 7 a; post; drop 7; drop 7; leave 7; leave 7; post; poll"),
}
LOSSES: Mapping[str, Script] = {
    "the-decode-never-comes": script(ONE, "begin 7 a; finish 7; post; wait 9; poll; wait 2; poll"),
    "the-prefill-never-comes": script(ONE, "expect 7 a; post; wait 11; poll"),
    "ready-is-lost": script(ONE, "begin 7 a; expect 7 a; lose; finish 7; post; wait 11; poll"),
    "some-rows-are-lost": script(ONE, "begin 7 a; expect 7 a; post; store 7 3; lose; finish 7; post; poll; wait 11; poll"),
    "the-metadata-are-lost": script(ONE, "begin 7 a; expect 7 a; post; store 7 9; post; finish 7; lose; poll; wait 11; poll"),
}
OTHERS: Mapping[str, Script] = {
    "a-picture-fewer-there": script({"a": ".....jj.", "b": ".iii.jj."}, "begin 7 a; expect 7 b", TO_ITS_END),
    "no-picture-there": script({"a": "........", "b": ".iii.jj."}, "begin 7 a; expect 7 b", TO_ITS_END),
    "another-picture-there": script({"a": ".kkk.jj.", "b": ".iii.jj."}, "begin 7 a; expect 7 b", TO_ITS_END),
    "pictures-the-other-way-round": script({"a": ".ii.jj.", "b": ".jj.ii."}, "begin 7 a; expect 7 b", TO_ITS_END),
    "other-ids": script({"a": ".iii.jj.", "b": ".iii.jj.."}, "begin 7 a; expect 7 b", TO_ITS_END),
}
DELTAS: Mapping[str, Script] = {
    "a-picture-of-196-positions": script(
        {"a": ".iii.jj."}, "begin 7 a; expect 7 a; post; finish 7; post; poll", deltas={"a": 14 - 196}
    ),
    "zero": script({"a": "iii"}, "begin 7 a; expect 7 a; post; finish 7; back; poll", deltas={"a": 0}),
    "each-room-its-own": script(
        {"a": "iii", "b": ".jj"},
        "begin 0 a; begin 1 b; expect 0 a; expect 1 b; post; finish 0; finish 1; back; poll",
        deltas={"a": -3, "b": -182},
    ),
}
LATE: Mapping[str, Script] = {
    "after-it-was-handed-over": script(ONE, "begin 7 a; expect 7 a; post; finish 7; post; poll; replay; poll"),
    "after-an-abort-there": script(ONE, "begin 7 a; expect 7 a; post; store 7 4; drop 7; post; poll; replay; poll"),
    "after-an-abort-here": script(ONE, "begin 7 a; expect 7 a; post; finish 7; leave 7; post; poll; replay; wait 1; poll"),
    "after-its-time": script(ONE, "begin 7 a; expect 7 a; post; store 7 4; post; wait 11; poll; replay; poll"),
    "beside-another-room": script(
        {"a": ".iii.", "b": ".jjj."},
        "begin 7 a; expect 7 a; post; store 7 4; drop 7; post; poll; begin 70 b; expect 70 b; replay; finish 70; post; poll",
    ),
}
ROOMS = {
    f"{kind}-{name}": one
    for kind, table in (
        ("handed", HANDED),
        ("numbers", NUMBERS),
        ("aborts", ABORTS),
        ("losses", LOSSES),
        ("others", OTHERS),
        ("late", LATE),
    )
    for name, one in table.items()
}
