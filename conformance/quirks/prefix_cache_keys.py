"""Ways in which engines have got the keys of pages wrong, under which a store outside the engine keeps them."""

from dataclasses import replace
from hashlib import sha256
from itertools import accumulate

import numpy as np

from conformance.quirk import quirk
from conformance.quirks.prefix_cache import bare, named, renamed
from reference.items import Request
from reference.prefix_cache import Namespace, block_keys, padded_pages


@quirk(
    "keys-of-raw-ids",
    replaces="page_keys",
    bugs=("H15", "H17", "lmcache-token-only-key"),
    caught_by=("PREFIX_CACHE-19",),
)
def keys_of_raw_ids(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """A store outside the engine makes its keys of the ids alone, with placeholders in them."""
    return block_keys(bare(request), namespace, page)


@quirk("keys-of-16-bits", replaces="page_keys", bugs=("H10", "lmcache-16bit-mm-hash"), caught_by=("PREFIX_CACHE-19",))
def keys_of_16_bits(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """The names of items are folded to 16 bits on their way into the keys."""
    return block_keys(renamed(request, lambda item: bytes(30) + named(item)[-2:]), namespace, page)


@quirk("keys-without-order", replaces="page_keys", bugs=("prefix-hash-predictable-collision",), caught_by=("PREFIX_CACHE-19",))
def keys_without_order(request: Request, namespace: Namespace, page: int) -> list[int]:
    """The keys of pages are combined by an operation that does not see their order."""
    labels = padded_pages(request, namespace, page)[1]
    own = (int.from_bytes(sha256(label.tobytes() + repr(namespace).encode()).digest(), "big") for label in labels)
    return list(accumulate(own, lambda a, b: a + b))


@quirk("keys-of-single-pages", replaces="page_keys", bugs=(), caught_by=("PREFIX_CACHE-19", "PREFIX_CACHE-20"))
def keys_of_single_pages(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """A page is known by what is in it, whatever comes before."""
    labels = padded_pages(request, namespace, page)[1]
    return [sha256(repr(namespace).encode() + label.tobytes()).digest() for label in labels]


@quirk("keys-that-never-come-again", replaces="page_keys", bugs=("H16",), caught_by=("PREFIX_CACHE-20", "PREFIX_CACHE-22"))
def keys_that_never_come_again(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """Something of the request itself gets into its keys."""
    return block_keys(request, (*namespace, request.id), page)


@quirk("key-of-a-begun-page", replaces="page_keys", bugs=(), caught_by=("PREFIX_CACHE-20",))
def key_of_a_begun_page(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """The positions behind the last full page have a key too, which is another one as soon as the next token comes."""
    missing = np.zeros(-len(request.input_ids) % page, dtype=np.int64)
    filled = replace(request, input_ids=np.concatenate([request.input_ids, missing]))
    return block_keys(filled, namespace, page)


@quirk("keys-without-salt", replaces="page_keys", bugs=("cache-salt-isolation",), caught_by=("PREFIX_CACHE-21",))
def keys_without_salt(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """Salt and adapter keep users apart in the engine, but not in the store behind it."""
    return block_keys(request, (), page)


@quirk(
    "keys-of-salt-glued-to-adapter",
    replaces="page_keys",
    bugs=("prefix-hash-predictable-collision",),
    caught_by=("PREFIX_CACHE-21",),
)
def keys_of_salt_glued_to_adapter(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """Salt and adapter go into the hash one after the other, without a boundary."""
    return block_keys(request, ("".join(filter(None, namespace)),), page)


@quirk("names-of-callers-are-for-all", replaces="page_keys", bugs=("uuid-cross-tenant",), caught_by=("PREFIX_CACHE-21",))
def names_of_callers_are_for_all(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """A name that a caller gave to a picture stands for it in every namespace: whoever knows the name shares its pages."""
    is_named = any(item.caller_hash is not None for item in request.items)
    return block_keys(request, () if is_named else namespace, page)


@quirk("keys-name-the-next-item", replaces="page_keys", bugs=("prefix-offbyone-mm-boundary",), caught_by=("PREFIX_CACHE-22",))
def keys_name_the_next_item(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """An item that begins exactly where a page ends gets into the key of that page."""
    behind = {span.first: named(item) for item in request.items for span in item.spans}
    return [key + behind.get((n + 1) * page, b"") for n, key in enumerate(block_keys(request, namespace, page))]


@quirk("keys-name-all-items", replaces="page_keys", bugs=("H12", "H17"), caught_by=("PREFIX_CACHE-22",))
def keys_name_all_items(request: Request, namespace: Namespace, page: int) -> list[bytes]:
    """Every key of a request names all of its items, also before the first of them."""
    everything = b"".join(sorted(map(named, request.items)))
    return [key + everything for key in block_keys(request, namespace, page)]
