"""Tables of mutations, one for each stage: what is lost of the reference, and the requirement that must notice."""

from typing import NamedTuple


class Mutation(NamedTuple):
    """What is lost, in which module, the text that goes and the text that comes, and the requirement that must notice."""

    loss: str
    module: str
    old: str
    new: str
    caught_by: str
