"""The one error of this stage."""


class MediaError(ValueError):
    """A medium that the client sent cannot be had: the client's fault, an answer of the kind 400 and not 500.

    Its text names neither a memory address nor a path: what a decoder or an operating system says of
    itself is not for clients.
    """
