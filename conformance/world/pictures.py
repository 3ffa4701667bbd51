"""The pictures that the suite shows, and prompts that name them.

A prompt is written with the names of its pictures in braces, "Compare {chelsea} with {coffee}.", so that one string
is a whole case, can be read, and costs nothing until it is used.
"""

from functools import cache
from pathlib import Path
from string import Formatter

from PIL import Image

PHOTOS = Path(__file__).parent / "photos"

TOKENS = {"astronaut": 16, "chelsea": 24, "coffee": 24, "rocket": 18, "eye": 4, "cup": 4}
"""Every picture, with the number of its tokens in `conformance.world.checkpoint.tiny_qwen2_vl`."""

_DETAILS = {"eye": ("chelsea", (88, 52, 144, 108)), "cup": ("coffee", (104, 40, 160, 96))}


@cache
def picture(name: str) -> Image.Image:
    """A photo, or a detail of 56 x 56 pixels of one."""
    photo, box = _DETAILS.get(name, (name, None))
    with Image.open(PHOTOS / f"{photo}.png") as opened:
        return opened.crop(box)


def pictures(prompt: str) -> list[Image.Image]:
    """The pictures that a prompt names, in order."""
    return [picture(name) for name in names(prompt)]


def names(prompt: str) -> list[str]:
    """The names of a prompt's pictures, in order."""
    return [name for _, name, _, _ in Formatter().parse(prompt) if name is not None]


def render(prompt: str, placeholder: str) -> str:
    """The prompt with a placeholder for each picture."""
    return prompt.format_map(dict.fromkeys(TOKENS, placeholder))
