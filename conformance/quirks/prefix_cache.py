"""Ways in which engines have got the prefix cache wrong: what they take for the same content."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from conformance.quirk import quirk
from reference.items import Item, Request, Span
from reference.placeholders import pad_spans
from reference.prefix_cache import Labels, Namespace, PrefixCache, block_keys, block_pages, padded_pages
from reference.sentinels import fill, item_sentinels

BLIND = ("H07", "H13", "H18", "H22", "prefix-image-blind")


def in_pages(ids: np.ndarray, page: int) -> Labels:
    """The labels of padded ids."""
    return ids[: len(ids) // page * page].reshape(-1, page)


def renamed(request: Request, name: Callable[[Item], bytes]) -> Request:
    """The request with its items known by other identities."""
    items = (replace(item, identity=name(item), caller_hash=None) for item in request.items)
    return replace(request, items=tuple(items))


def bare(request: Request) -> Request:
    """The request without its items: their placeholders become text."""
    return replace(request, items=())


@quirk(
    "raw-placeholders",
    replaces="open_prefix_cache",
    bugs=BLIND,
    caught_by=("PREFIX_CACHE-01", "PREFIX_CACHE-07", "PREFIX_CACHE-23", "PREFIX_CACHE-24"),
)
def raw_placeholders(page: int) -> PrefixCache:
    """Only ids are compared, and all pictures have the same placeholder id: the second user gets the first one's picture."""
    return PrefixCache(page, lambda request, namespace, page: padded_pages(bare(request), namespace, page))


@quirk("embeddings-without-identity", replaces="open_prefix_cache", bugs=("H14",), caught_by=("PREFIX_CACHE-01",))
def embeddings_without_identity(page: int) -> PrefixCache:
    """Items that come as embeddings are left out of the comparison; only pictures count."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        pictures = tuple(item for item in request.items if item.embedding is None)
        return padded_pages(replace(request, items=pictures), namespace, page)

    return PrefixCache(page, label)


@quirk(
    "names-cut-to-16-bits",
    replaces="open_prefix_cache",
    bugs=("H10", "lmcache-16bit-mm-hash"),
    caught_by=("PREFIX_CACHE-01", "PREFIX_CACHE-24"),
)
def names_cut_to_16_bits(page: int) -> PrefixCache:
    """Of an identity the last 16 bits are kept: some picture of another user soon has the same ones."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        return padded_pages(renamed(request, lambda item: bytes(30) + named(item)[-2:]), namespace, page)

    return PrefixCache(page, label)


@quirk("only-the-first-item-of-a-page", replaces="open_prefix_cache", bugs=("H07",), caught_by=("PREFIX_CACHE-01",))
def only_the_first_item_of_a_page(page: int) -> PrefixCache:
    """The key of a page names the first item in it, and none behind that."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        return None, chained(request, namespace, page, lambda overlaps, first: [str(one) for one in overlaps[:1]])

    return PrefixCache(page, label)


@quirk(
    "names-without-places", replaces="open_prefix_cache", bugs=("prefix-key-offset-ambiguity",), caught_by=("PREFIX_CACHE-01",)
)
def names_without_places(page: int) -> PrefixCache:
    """The key of a page names the items in it, but not where they stand."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        return None, chained(request, namespace, page, lambda overlaps, first: [name for _, name in overlaps])

    return PrefixCache(page, label)


@quirk(
    "next-item-counts",
    replaces="open_prefix_cache",
    bugs=("prefix-offbyone-mm-boundary",),
    caught_by=("PREFIX_CACHE-03", "PREFIX_CACHE-23"),
)
def next_item_counts(page: int) -> PrefixCache:
    """An item that begins exactly where a page ends is taken for a part of that page."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        keys = block_keys(request, namespace, page)
        behind = {span.first: named(item) for item in request.items for span in item.spans}
        touched = [key + behind.get((n + 1) * page, b"") for n, key in enumerate(keys)]
        return None, as_labels(touched)

    return PrefixCache(page, label)


@quirk("item-is-one-run", replaces="open_prefix_cache", bugs=("prefix-noncontiguous-item",), caught_by=("PREFIX_CACHE-01",))
def item_is_one_run(page: int) -> PrefixCache:
    """An item is taken for one run of as many positions as it has rows: text between the frames of a video is covered."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        padded = request.input_ids.copy()
        for item in request.items:
            padded[item.spans[0].first :][: item.token_count] = fill(item_sentinels(item), item.token_count)
        return namespace, in_pages(padded, page)

    return PrefixCache(page, label)


@quirk("one-name-for-all-items", replaces="open_prefix_cache", bugs=("H12",), caught_by=("PREFIX_CACHE-03",))
def one_name_for_all_items(page: int) -> PrefixCache:
    """All items of a request are hashed together: the first picture is another one as soon as a second one joins it."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        ordered = sorted(request.items, key=lambda item: item.spans)
        joint = sha256(b"".join(map(named, ordered))).digest()
        return padded_pages(renamed(request, lambda item: joint), namespace, page)

    return PrefixCache(page, label)


@quirk("media-in-the-namespace", replaces="open_prefix_cache", bugs=("H12",), caught_by=("PREFIX_CACHE-03", "PREFIX_CACHE-23"))
def media_in_the_namespace(page: int) -> PrefixCache:
    """The media of a request are made a part of its namespace: not even the text before them is shared."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        tree, labels = padded_pages(request, namespace, page)
        return (tree, *sorted(map(named, request.items))), labels

    return PrefixCache(page, label)


@quirk(
    "name-of-the-request",
    replaces="open_prefix_cache",
    bugs=("H16",),
    caught_by=(
        "PREFIX_CACHE-02",
        "PREFIX_CACHE-03",
        "PREFIX_CACHE-08",
        "PREFIX_CACHE-10",
        "PREFIX_CACHE-15",
        "PREFIX_CACHE-16",
        "PREFIX_CACHE-23",
        "PREFIX_CACHE-25",
    ),
)
def name_of_the_request(page: int) -> PrefixCache:
    """Something of the request itself gets into the key, which so never comes again."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        tree, labels = padded_pages(request, namespace, page)
        return (tree, request.id), labels

    return PrefixCache(page, label)


@quirk(
    "no-name-is-a-name",
    replaces="open_prefix_cache",
    bugs=("prefix-image-blind",),
    caught_by=("PREFIX_CACHE-07",),
)
def no_name_is_a_name(page: int) -> PrefixCache:
    """Items whose content was never hashed are all known by the same empty name."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        items = [item if has_name(item) else replace(item, identity=bytes(32)) for item in request.items]
        return padded_pages(replace(request, items=tuple(items)), namespace, page)

    return PrefixCache(page, label)


@quirk("length-in-the-key", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-23",))
def length_in_the_key(page: int) -> PrefixCache:
    """Pages are known by hashes that tell two lengths of an item apart, while other servers of the scheme do not."""
    return PrefixCache(page, block_pages)


@quirk("hashes-cut-to-32-bits", replaces="open_prefix_cache", bugs=("H10",), caught_by=("PREFIX_CACHE-24",))
def hashes_cut_to_32_bits(page: int) -> PrefixCache:
    """Of a caller's hash the low 32 bits are kept."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        hashes = [None if item.caller_hash is None else item.caller_hash % 2**32 for item in request.items]
        items = [replace(item, caller_hash=value) for item, value in zip(request.items, hashes, strict=True)]
        return padded_pages(replace(request, items=tuple(items)), namespace, page)

    return PrefixCache(page, label)


@quirk("one-namespace", replaces="open_prefix_cache", bugs=("cache-salt-isolation",), caught_by=("PREFIX_CACHE-04",))
def one_namespace(page: int) -> PrefixCache:
    """Salt and adapter are not looked at: the time to the first token tells what others have asked."""
    return PrefixCache(page, lambda request, namespace, page: padded_pages(request, (), page))


@quirk("salt-glued-to-adapter", replaces="open_prefix_cache", bugs=("cache-salt-isolation",), caught_by=("PREFIX_CACHE-04",))
def salt_glued_to_adapter(page: int) -> PrefixCache:
    """Salt and adapter are joined to one text without a boundary."""
    return PrefixCache(page, lambda request, namespace, page: padded_pages(request, ("".join(filter(None, namespace)),), page))


@quirk("padded-in-place", replaces="open_prefix_cache", bugs=(), caught_by=("PREFIX_CACHE-18",))
def padded_in_place(page: int) -> PrefixCache:
    """The request's own ids are padded."""

    def label(request: Request, namespace: Namespace, page: int) -> tuple[Hashable, Labels]:
        request.input_ids[:] = pad_spans(request.input_ids, request.items)
        return namespace, in_pages(request.input_ids, page)

    return PrefixCache(page, label)


def named(item: Item) -> bytes:
    """32 bytes that stand for an item."""
    if item.caller_hash is not None:
        return item.caller_hash.to_bytes(32, "big")
    if item.identity is None:
        raise ValueError("an item has an identity or a hash")
    return item.identity


def has_name(item: Item) -> bool:
    """Whether an item has an identity or a hash."""
    return item.identity is not None or item.caller_hash is not None


def as_labels(keys: Sequence[bytes]) -> Labels:
    """The labels of keys of any length."""
    return np.frombuffer(b"".join(sha256(key).digest() for key in keys), dtype=np.int64).reshape(-1, 4)


def chained(
    request: Request,
    namespace: Namespace,
    page: int,
    choose: Callable[[list[tuple[int, str]], int], list[str]],
) -> Labels:
    """Block keys over the ids and what `choose` makes of the items in a page: their places in it and their names."""
    keys, parent = [], repr(namespace).encode()
    spans: list[tuple[Span, Item]] = sorted(
        ((span, item) for item in request.items for span in item.spans), key=lambda pair: pair[0]
    )
    for first in range(0, len(request.input_ids) // page * page, page):
        overlaps = [(s.first - first, named(item).hex()) for s, item in spans if s.first < first + page and s.stop > first]
        media = repr(choose(overlaps, first)).encode()
        parent = sha256(parent + media + request.input_ids[first : first + page].tobytes()).digest()
        keys.append(parent)
    return as_labels(keys)
