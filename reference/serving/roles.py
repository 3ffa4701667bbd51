"""Roles: what the processes of a server do, by name."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from reference.parallel.collectives import Gloo
from reference.serving import reading
from reference.serving.decode import Decode
from reference.serving.encoder import Encoder
from reference.serving.post import Post
from reference.serving.prefill import Prefill
from reference.serving.rank import Rank

Config = dict[str, Any]
PATIENCE_S = 60
"""How long a rank waits for the others before it gives them up. The first one speaks every second."""


def run(role: str, name: str, config: Config, checkpoint: Any) -> None:
    """Do the work of a process until it is told to stop."""
    ROLES[role](Path(config["folder"]), name, config, checkpoint)


def tokenizer(folder: Path, name: str, config: Config, checkpoint: Any) -> None:
    """Read requests."""
    post = Post(folder, name)
    post.send("service", "ready", {"name": name})
    reading.serve(post, checkpoint.processor, config["media"], config["receivers"], config["bare"])
    post.close()


def rank(folder: Path, name: str, config: Config, checkpoint: Any) -> None:
    """Compute the model with the other ranks."""
    number, size = config["rank"], config["size"]
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder / 'group'}", rank=number, world_size=size, timeout=timedelta(seconds=PATIENCE_S)
    )
    post = Post(folder, name)
    if number:
        checkpoint.model.model.visual = torch.nn.Identity()
    one = Rank(checkpoint.model, Gloo(), post if number == 0 else None, config["chunk_length"])
    post.send("service", "ready", {"name": name})
    one.serve()
    post.close()
    dist.destroy_process_group()


def encoder(folder: Path, name: str, config: Config, checkpoint: Any) -> None:
    """Encode media; it has no language model."""
    checkpoint.model.model.language_model.layers = torch.nn.ModuleList()
    _serve(folder, name, lambda post: Encoder(checkpoint.model, post))


def prefill(folder: Path, name: str, config: Config, checkpoint: Any) -> None:
    """Compute prompts; it has no vision tower."""
    checkpoint.model.model.visual = torch.nn.Identity()
    _serve(folder, name, lambda post: Prefill(checkpoint.model, post, config["chunk_length"]))


def decode(folder: Path, name: str, config: Config, checkpoint: Any) -> None:
    """Go on behind prompts; it has no vision tower."""
    checkpoint.model.model.visual = torch.nn.Identity()
    _serve(folder, name, lambda post: Decode(checkpoint.model, post))


def _serve(folder: Path, name: str, make: Callable[[Post], Encoder | Prefill | Decode]) -> None:
    torch.set_num_threads(1)
    post = Post(folder, name)
    one = make(post)
    post.send("service", "ready", {"name": name})
    one.serve()
    post.close()


ROLES: dict[str, Callable[[Path, str, Config, Any], None]] = {
    "tokenizer": tokenizer, "rank": rank, "encoder": encoder, "prefill": prefill, "decode": decode
}  # fmt: skip
