"""Serving: the stages of the reference as processes that answer requests.

    python -m reference.serving --checkpoint package.module:function [--tp 2 | --disaggregated]

    client -> service -> tokenizer -> rank 0, rank 1, …                  (tensor parallel)
                                   -> encoder -> prefill -> decode       (disaggregated)

It is a program and not a stage: small enough to be read, with the parts that engines have, so that what is right in one
process can be seen to be right in several. Its answers are greedy tokens, and the same ones whatever the processes.

    service     what a client sees: requests in, tokens or errors out
    nursery     where processes come from, and who notices that one has died
    post        messages between processes, over ZMQ, on the wire of `transport`
    reading     the tokenizer: media, the owner's processor, identity, padding
    features    tensors between processes, through a channel of `transport`
    rank        a rank of a tensor-parallel group
    group       what ranks tell one another, and agree on
    shards      a language model of which each rank has a part
    encoder, prefill, decode   the three sides of a disaggregated model
    running     one prompt through a model, chunk by chunk and token by token
"""
