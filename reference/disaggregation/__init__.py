"""Disaggregation: encoder, prefill and decode as instances of their own.

`assignment` says who encodes what. `encoder_side` encodes parts and sends them, `receiver` puts them together again before
the prefill. `prefill_side` and `decode_side` hand over what was computed, room by room, in the messages of `wire`.
`carriers` move rows between processes; `registered` does so with shared memory, Mooncake and NIXL.
"""
