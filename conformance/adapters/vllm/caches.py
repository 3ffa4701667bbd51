"""vLLM's processor caches, the sender's in the frontend and the receiver's in the engine core, and how LoRA names items."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch

from conformance.adapters.vllm import cpu
from conformance.adapters.vllm.cpu import Vllm

GIB = 1 << 30
PARALLEL = SimpleNamespace(_api_process_count=1, data_parallel_size=1, data_parallel_external_lb=False)


def identifier(known: str, adapter: str | None, changes_encoder: bool) -> str:
    """`InputProcessor._get_mm_identifier`, where the LoRA manager does or does not take adapters of the encoder."""
    processor = SimpleNamespace(lora_config=SimpleNamespace(enable_tower_connector_lora=changes_encoder))
    request = None if adapter is None else SimpleNamespace(lora_name=adapter)
    made = cpu.module("vllm.v1.engine.input_processor").InputProcessor._get_mm_identifier(processor, known, request)
    return str(made)


class Mirror:
    """`LruKeyReplicatedSenderCache` and `LruKeyReplicatedReceiverCache`; without capacity there are none."""

    def __init__(self, vllm: Vllm, capacity_bytes: int) -> None:
        self._vllm = vllm
        self._caches = cpu.module("vllm.multimodal.cache.base")
        factories = cpu.module("vllm.multimodal.cache.factories")
        settings = cpu.module("vllm.config.multimodal").MultiModalConfig(mm_processor_cache_gb=capacity_bytes / GIB)
        model = SimpleNamespace(supports_multimodal_inputs=True, get_multimodal_config=lambda: settings)
        config = SimpleNamespace(model_config=model, parallel_config=PARALLEL)
        self._sender = factories.processor_cache_from_config(config)
        self._receiver = factories.engine_receiver_cache_from_config(config)

    def send(self, keys: Sequence[bytes], adapter: str | None, make: Callable[[bytes], torch.Tensor]) -> Any:
        """The features of a request, as a `BaseMultiModalProcessor` leaves them and the input processor names them."""
        hashes = [key.hex() for key in keys]
        position = self._vllm.inputs.PlaceholderRange(offset=0, length=1)
        return [
            self._vllm.inputs.MultiModalFeatureSpec(
                data=data, modality="image", identifier=identifier(known, adapter, True), mm_position=position, mm_hash=known
            )
            for known, data in zip(hashes, self._processed(list(keys), hashes, make), strict=True)
        ]

    def receive(self, message: Any) -> Sequence[torch.Tensor | None]:
        """`get_and_update_features`, whose error names what is lacking."""
        lacking: list[str] = []
        if self._receiver is not None:
            try:
                self._receiver.get_and_update_features(message)
            except self._caches.MultiModalCacheMissError as error:
                lacking = error.mm_hashes
        return [None if one.mm_hash in lacking else one.data["pixel_values"].data for one in message]

    def forget(self, keys: Sequence[bytes]) -> None:
        """`invalidate`, which a frontend calls with the names that the error bears."""
        for key in keys:
            self._sender.invalidate(key.hex())

    def restart(self) -> None:
        """`clear_cache` of the receiver."""
        if self._receiver is not None:
            self._receiver.clear_cache()

    def used_bytes(self) -> int:
        """The size that the receiver's cache has counted."""
        return 0 if self._receiver is None else int(self._receiver._cache.currsize)

    def _processed(self, keys: list[bytes], hashes: list[str], make: Callable[[bytes], torch.Tensor]) -> list[Any]:
        """`_get_cache_missing_items` and `_merge_mm_kwargs`, with `make` in place of the model owner's processor."""
        if self._sender is None:
            return [self._item(make(key)) for key in keys]
        owner = cpu.module("vllm.multimodal.processing.processor").BaseMultiModalProcessor
        model = SimpleNamespace(info=SimpleNamespace(parse_mm_data=lambda data, validate: data))
        cached, missing = owner._get_cache_missing_items(model, self._sender, {"image": keys}, {"image": hashes})
        made = [self._item(make(key)) for key in missing.get("image", ())]
        try:
            merged, _ = owner._merge_mm_kwargs(
                model, self._sender, {"image": hashes}, cached, {"image": made}, {"image": [()] * len(made)}
            )
        finally:
            self._sender.release_sender_touches()
        return list(merged["image"])

    def _item(self, result: torch.Tensor) -> Any:
        field = self._vllm.inputs.MultiModalBatchedField()
        element = self._vllm.inputs.MultiModalFieldElem(data=result, field=field)
        return self._vllm.inputs.MultiModalKwargsItem({"pixel_values": element})
