"""Preprocessing: what the model's processor makes of media.

`background` runs the processor in threads of its own and keeps what came of it. `mirror` keeps it on the other side of a
process boundary, so that it is sent once.
"""
