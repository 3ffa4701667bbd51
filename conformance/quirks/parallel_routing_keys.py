"""Ways in which routers have taken requests with other pictures for the same, or the same for others."""

from dataclasses import replace

from conformance.protocol.prefix_cache import Namespace
from conformance.quirk import quirk
from reference.items import Request
from reference.parallel.routing import Routed, routed
from reference.prefix_cache import block_keys


@quirk(
    "router-hashes-placeholders",
    replaces="routed",
    bugs=("H17", "C07"),
    caught_by=("PARALLEL-41", "PARALLEL-44", "PARALLEL-46", "PARALLEL-47"),
)
def router_hashes_placeholders(request: Request, namespace: Namespace, page: int) -> Routed:
    """A router sees ids alone, and one placeholder is like the other."""
    bare = replace(request, items=())
    return Routed(block_keys(bare, namespace, page), len(request.input_ids))


@quirk(
    "short-prompt-is-padded-without-media",
    replaces="routed",
    bugs=("C06",),
    caught_by=("PARALLEL-41", "PARALLEL-44", "PARALLEL-46"),
)
def short_prompt_is_padded(request: Request, namespace: Namespace, page: int) -> Routed:
    """A prompt shorter than a page has one key all the same, of a page that nothing was written to."""
    plain = routed(request, namespace, page)
    return plain._replace(keys=["empty page"]) if len(request.input_ids) < page else plain


@quirk("caller-hash-cut-short", replaces="routed", bugs=("C01", "C02"), caught_by=("PARALLEL-41", "PARALLEL-44", "PARALLEL-46"))
def caller_hash_cut_short(request: Request, namespace: Namespace, page: int) -> Routed:
    """Of a caller's hash the lower half counts, and hashes that are padded with zeros are all alike."""
    items = [
        item if item.caller_hash is None else replace(item, caller_hash=item.caller_hash & 0xFFFFFFFF) for item in request.items
    ]
    return routed(replace(request, items=tuple(items)), namespace, page)


@quirk("caller-hash-unheard", replaces="routed", bugs=("C02",), caught_by=("PARALLEL-41", "PARALLEL-44", "PARALLEL-46"))
def caller_hash_unheard(request: Request, namespace: Namespace, page: int) -> Routed:
    """A router goes by content where the cache goes by the caller's hash."""
    items = [
        item if item.caller_hash is None else replace(item, caller_hash=None, identity=item.identity or bytes(32))
        for item in request.items
    ]
    return routed(replace(request, items=tuple(items)), namespace, page)


@quirk("picture-without-a-place", replaces="routed", bugs=("C07",), caught_by=("PARALLEL-47",))
def picture_without_a_place(request: Request, namespace: Namespace, page: int) -> Routed:
    """A picture whose placeholder the tokenizer has split is in no key, and its request looks like any other."""
    return Routed(block_keys(request, namespace, page), len(request.input_ids))


@quirk("tenants-share-a-router", replaces="routed", bugs=("cache-salt-isolation",), caught_by=("PARALLEL-45",))
def tenants_share_a_router(request: Request, namespace: Namespace, page: int) -> Routed:
    """Salts and adapters are no part of a router's keys."""
    return routed(request, Namespace(), page)


@quirk("keys-of-its-own", replaces="routed", bugs=("H17",), caught_by=("PARALLEL-46",))
def keys_of_its_own(request: Request, namespace: Namespace, page: int) -> Routed:
    """A router hashes pages its own way, and what the cache says of its pages means nothing to it."""
    plain = routed(request, namespace, page)
    return plain._replace(keys=[b"router" + key for key in plain.keys if isinstance(key, bytes)])


@quirk("media-weigh-nothing", replaces="routed", bugs=("tgi-slot-alloc-mismatch",), caught_by=("PARALLEL-48",))
def media_weigh_nothing(request: Request, namespace: Namespace, page: int) -> Routed:
    """A request counts as many tokens as it has text."""
    media = sum(item.token_count for item in request.items)
    return routed(request, namespace, page)._replace(token_count=len(request.input_ids) - media)
