"""Mutations of `identity`."""

from tests.mutations import Mutation

MUTATIONS = [
    Mutation("the modality is part of the identity", "identity", "_number(item.modality), ", "", "IDENTITY-10"),
    Mutation("the shape is part of the identity", "identity", '",".join(map(str, shape)).encode(), ', "", "IDENTITY-06"),
    Mutation("the dtype is part of the identity", "identity", "dtype.encode(), ", "", "IDENTITY-07"),
    Mutation(
        "the fields are part of the identity",
        "identity",
        '_encode(dict(item.fields), "fields", metadata=True), ',
        "",
        "IDENTITY-12",
    ),
    Mutation("the order of fields is not", "identity", "*sorted(pairs)", "*pairs", "IDENTITY-13"),
    Mutation(
        "the palette is part of a picture", "identity", '_frame("picture", palette, ', '_frame("picture", ', "IDENTITY-14"
    ),
    Mutation(
        "a wrong number of caller hashes drops all",
        "identity",
        "    if problems:\n        return adopted, problems\n",
        "",
        "IDENTITY-25",
    ),
]
