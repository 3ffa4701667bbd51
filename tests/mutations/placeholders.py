"""Mutations of `placeholders`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation(
        "a run at the edge of a prompt is found",
        "placeholders",
        "np.pad(_checked(input_ids) == token_id, 1)",
        "np.pad(_checked(input_ids) == token_id, (1, 0))",
        "PLACEHOLDERS-01",
    ),
    Mutation(
        "the caller's ids are copied",
        "placeholders",
        "padded = _checked(input_ids).copy()\n    spans = ",
        "padded = _checked(input_ids)\n    spans = ",
        "PLACEHOLDERS-03",
    ),
    Mutation(
        "spans must lie within the prompt",
        "placeholders",
        "spans = span_table(items, len(padded))",
        "spans = span_table([item for item in items if all(span.stop <= len(padded) for span in item.spans)], len(padded))",
        "PLACEHOLDERS-17",
    ),
    Mutation(
        "spans do not overlap",
        "placeholders",
        "    spans = span_table(items, len(padded))\n    _fill(padded, spans, sentinel_table(items))\n",
        "    for one in items:\n"
        "        spans = span_table([one], len(padded))\n"
        "        _fill(padded, spans, sentinel_table([one]))\n",
        "PLACEHOLDERS-07",
    ),
]
