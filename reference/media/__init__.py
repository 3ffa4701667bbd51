"""Media: from a URL, a data URI, a path or bytes to pixels. Decoding of video and audio is not here yet.

`fetching` turns a reference into bytes, under a policy that refuses by default; `decoding` turns bytes into pixels;
`sampling` says which frames of a video are worth decoding.
"""

from reference.media.errors import MediaError

__all__ = ["MediaError"]
