"""Who is bound by a requirement. A module of its own: the command line reads it without loading the engine protocol."""

from enum import StrEnum


class Profile(StrEnum):
    """Who is bound: every engine, or those that promise the exact values of one scheme."""

    CORE = "core"
    SGLANG = "sglang"
