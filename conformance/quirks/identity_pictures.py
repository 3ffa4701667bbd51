"""Ways in which engines have got the identity of a picture wrong."""

from PIL import ExifTags
from PIL.Image import Image

from conformance.quirk import quirk
from conformance.quirks.identity import changed, marked
from reference import identity as right
from reference.items import Item


@quirk("picture-as-bytes", replaces="identify", bugs=("H09", "vllm-image-hash-tobytes"), caught_by=("IDENTITY-14",))
def picture_as_bytes(item: Item) -> bytes:
    """A picture is hashed by its pixel bytes, without size, mode and palette."""
    return right.identify(changed(item, lambda leaf: leaf.tobytes() if isinstance(leaf, Image) else leaf))


@quirk("palette-not-hashed", replaces="identify", bugs=("palette-only-difference",), caught_by=("IDENTITY-14",))
def without_palette(item: Item) -> bytes:
    """A palette picture is hashed by its indices, whatever colours they stand for."""
    return right.identify(changed(item, lambda leaf: _grey(leaf) if isinstance(leaf, Image) and leaf.mode == "P" else leaf))


def _grey(picture: Image) -> Image:
    picture = picture.copy()
    picture.putpalette(bytes(768))
    return picture


@quirk("transparency-not-hashed", replaces="identify", bugs=("palette-only-difference",), caught_by=("IDENTITY-14",))
def without_transparency(item: Item) -> bytes:
    """Which colour of a picture is transparent is left out."""
    return right.identify(changed(item, lambda leaf: _opaque(leaf) if isinstance(leaf, Image) else leaf))


def _opaque(picture: Image) -> Image:
    picture = picture.copy()
    picture.info.pop("transparency", None)
    return picture


@quirk("picture-with-metadata", replaces="identify", bugs=(), caught_by=("IDENTITY-15",))
def with_metadata(item: Item) -> bytes:
    """The metadata of a picture is hashed with it, so that the same picture from another camera is never found."""
    return marked(item, sorted(item.feature.info) if isinstance(item.feature, Image) else None)


@quirk("image-id-trusted", replaces="identify", bugs=("hash-exif-imageid-trust",), caught_by=("IDENTITY-15", "IDENTITY-16"))
def image_id_trusted(item: Item) -> bytes:
    """The ImageID in a picture's EXIF data replaces its content: whoever writes the file chooses its identity."""
    return right.identify(changed(item, lambda leaf: leaf if not isinstance(leaf, Image) else _image_id(leaf) or leaf))


def _image_id(picture: Image) -> bytes:
    return str(picture.getexif().get(ExifTags.Base.ImageID, "")).encode()
