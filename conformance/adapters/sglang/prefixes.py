"""SGLang's radix cache, without the memory that it manages.

Requests are padded as the scheduler has them padded, and a limit, a salt and an adapter are put into the key as
`Req.init_next_round_input` does. `RadixCache` runs as it is, with an allocator that has nothing to free. Its storage
hashes (`get_hash_str`) are C++ that is compiled at their first use, against OpenSSL, and are left out.
"""

from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.sglang import cpu
from conformance.adapters.sglang import items as translate
from conformance.adapters.sglang.cpu import Sglang
from conformance.protocol.prefix_cache import Namespace
from reference.items import Request


class PrefixCache:
    """`RadixCache`."""

    def __init__(self, sglang: Sglang, page: int) -> None:
        self._sglang = sglang
        self._radix = cpu.module("sglang.srt.mem_cache.radix_cache")
        self._base = cpu.module("sglang.srt.mem_cache.base_prefix_cache")
        allocator = SimpleNamespace(device="cpu", free_segment=lambda indices, start_pos: None)
        self._cache = self._radix.RadixCache.create_simulated(mock_allocator=allocator, page_size=page)

    def insert(self, request: Request, namespace: Namespace, limit: int) -> None:
        """`RadixCache.insert`."""
        key = self._key(request, namespace, limit)
        self._cache.insert(self._base.InsertParams(key=key, value=torch.arange(len(key))))

    def match(self, request: Request, namespace: Namespace, limit: int) -> int:
        """`RadixCache.match_prefix`."""
        return int(self._found(request, namespace, limit).device_prefix_len)

    def lock(self, request: Request, namespace: Namespace, limit: int) -> Any:
        """`RadixCache.inc_lock_ref` of the node at which the match ends."""
        node = self._found(request, namespace, limit).last_device_node
        self._cache.inc_lock_ref(node)
        return node

    def unlock(self, lock: Any) -> None:
        """`RadixCache.dec_lock_ref`."""
        self._cache.dec_lock_ref(lock)

    def evict(self, tokens: int) -> int:
        """`RadixCache.evict`."""
        return int(self._cache.evict(self._base.EvictParams(num_tokens=tokens)).num_tokens_evicted)

    def used_tokens(self) -> int:
        """`RadixCache.evictable_size` and `protected_size`."""
        return int(self._cache.evictable_size() + self._cache.protected_size())

    def clear(self) -> None:
        """`RadixCache.reset`."""
        self._cache.reset()

    def _found(self, request: Request, namespace: Namespace, limit: int) -> Any:
        return self._cache.match_prefix(self._base.MatchPrefixParams(key=self._key(request, namespace, limit)))

    def _key(self, request: Request, namespace: Namespace, limit: int) -> Any:
        ids = translate.padded(self._sglang, request.input_ids, translate.inputs(self._sglang, request.items))
        return self._radix.RadixKey(ids, extra_key=namespace.adapter, limit=limit, cache_salt=namespace.salt)
