"""An engine in a process of its own, in an environment of its own: the suite asks it in lines of JSON.

Engines pin their torch and transformers, and not all are written in Python. `plain` says how values are written,
`peer` how calls travel both ways, `worker` runs on the engine's side, and `engine` is what the suite sees of it.
"""

PROTOCOL = 1
"""The version of what is spoken between the two."""
