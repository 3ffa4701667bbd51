"""Media: from a URL, a data URI, a path or bytes to pixels, frames and samples.

`fetching` turns a reference into bytes, under a policy that refuses by default; `decoding` turns bytes into pixels, `video`
into frames and `audio` into samples, by way of `containers`; `sampling` says which frames are worth decoding, and
`resampling` brings sound to a model's rate.
"""

from reference.media.errors import MediaError

__all__ = ["MediaError"]
