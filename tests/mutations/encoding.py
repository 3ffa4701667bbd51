"""Mutations of `encoding`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "an item outside the chunk is not encoded",
        "encoding",
        "(item for item in request.items if count_in_chunk(item.spans, chunk))",
        "(item for item in request.items)",
        "ENCODING-11",
    ),
    Mutation(
        "the token count tells two items apart",
        "encoding",
        "return item.modality, item.identity, item.token_count",
        "return item.modality, item.identity, 0",
        "ENCODING-10",
    ),
    Mutation("rows are dense", "encoding", "rows.layout is not torch.strided", "False", "ENCODING-29"),
]
