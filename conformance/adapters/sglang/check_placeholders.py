"""What SGLang 0.5.23 gets wrong as it finds media in a prompt, and prompts in its cache: seen without the suite."""

from array import array

import torch

from conformance.adapters.checks import Checks, error
from conformance.adapters.sglang import cpu
from conformance.adapters.sglang.parts import inputs, named, padded, sg

CHECKS = Checks()
fails = CHECKS.fails


@fails("PLACEHOLDERS-01")
def search_wraps_around() -> bool:
    """A prompt that begins and ends with the placeholder has a span from its end to its start; one of nothing else none."""
    find = cpu.module("sglang.srt.multimodal.processors.base_processor").BaseMultimodalProcessor.get_mm_items_offset
    return (find(torch.tensor([3, 1, 3]), 3), find(torch.tensor([3, 3, 3]), 3)) == ([(2, 0)], [])


@fails("PLACEHOLDERS-07", "PLACEHOLDERS-17")
def overlaps_are_padded() -> bool:
    """Of two items at one position the later one wins, and a span that leaves the prompt is cut: no error."""
    late = named(2, offsets=[(1, 2)])
    both, alone = padded(3, named(1, offsets=[(0, 1)]), late), padded(2, late)
    return [both[1:], alone[1:]] == [late.padding_sequence(2), late.padding_sequence(1)]


@fails("PLACEHOLDERS-15")
def pairs_that_do_not_pair_up() -> bool:
    """A prompt whose pair tokens do not balance stays unpadded; a slice before any item gets the last item's sentinels."""

    def pairs(*ids: int) -> list[int]:
        made, both = inputs(named(1), named(2)), [(101, 102), (103, 104)]
        pad = sg().utils.pad_mm_token_pairs
        return list(pad(array("q", ids), made, data_token_pairs=both, data_start_token_ids=[101]))

    unbalanced, early = pairs(101, 7, 102, 101, 7), pairs(103, 7, 104)
    nested = error(lambda: pairs(101, 7, 103, 7, 104, 7, 102))
    return (unbalanced, early[1], nested) == ([101, 7, 102, 101, 7], named(2).pad_value, "AssertionError")


@fails("PREFIX_CACHE-17")
def page_of_no_positions() -> bool:
    """A radix cache takes a page of no positions, and divides by it at its first prompt."""
    radix, base = (cpu.module(f"sglang.srt.mem_cache.{name}") for name in ("radix_cache", "base_prefix_cache"))
    cache = radix.RadixCache.create_simulated(page_size=0)
    key = radix.RadixKey(array("q", [1, 2]))
    return error(lambda: cache.match_prefix(base.MatchPrefixParams(key=key))) == "ZeroDivisionError"
