"""Mutations of `transport`."""

from tests.mutations import Mutation

MUTATIONS = [
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
]
