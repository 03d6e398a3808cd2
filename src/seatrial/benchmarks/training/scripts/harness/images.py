"""Images of a made-up data set as JPEG, and what a training does with each: decode, crop and flip.

They are of the kind of made-up batches (torch_data.py): noise around a coarse pattern for each of ten classes, with one
label in five at random, so that a network can learn them. The patterns are symmetric, since images are flipped. Noise
has half the resolution, which gives about as many bytes per pixel as photographs have.
"""

from __future__ import annotations

import io
import random
import zlib
from collections.abc import Sequence
from functools import cache
from typing import Any

CLASSES = 10
MEAN, DEVIATION = 128.0, 48.0
"""Of the bytes of these images: subtracted, and divided by."""
_CELLS = 8
_RANDOM = 0.2
_MARGIN = 7
_QUALITY = 90


def stored_size(size: Sequence[int]) -> tuple[int, int]:
    """Height and width of stored images, from which a random part of (channels, height, width) is taken: 256 for
    224."""
    return size[1] + size[1] // _MARGIN, size[2] + size[2] // _MARGIN


@cache
def _pattern(kind: int, height: int, width: int) -> Any:
    from PIL import Image

    values = random.Random(f"pattern {kind}")  # noqa: S311
    cells = []
    for _ in range(_CELLS):
        half = [[values.gauss(MEAN, 60.0) for _ in range(3)] for _ in range(_CELLS // 2)]
        cells += [min(255, max(0, round(value))) for cell in (*half, *reversed(half)) for value in cell]
    return Image.frombytes("RGB", (_CELLS, _CELLS), bytes(cells)).resize((width, height), Image.Resampling.NEAREST)


def made(size: Sequence[int], seed: int, number: int) -> tuple[int, bytes]:
    """The label of an image and its JPEG; the same for the same seed and number."""
    from PIL import Image

    height, width = stored_size(size)
    values = random.Random(f"{seed} {number}")  # noqa: S311
    kind = values.randrange(CLASSES)
    label = values.randrange(CLASSES) if values.random() < _RANDOM else kind
    small = (width + 1) // 2, (height + 1) // 2
    noise = Image.frombytes("RGB", small, values.randbytes(3 * small[0] * small[1]))
    image = Image.blend(_pattern(kind, height, width), noise.resize((width, height)), 0.4)
    stored = io.BytesIO()
    image.save(stored, "JPEG", quality=_QUALITY)
    return label, stored.getvalue()


def augmented(encoded: bytes, size: Sequence[int], seed: int, number: int) -> bytes:
    """The RGB bytes (height x width x 3) of a decoded image: a part at random, flipped in half of the cases. `seed`
    and `number` decide both, whichever process does it. Raises OSError for what cannot be decoded."""
    from PIL import Image

    height, width = size[1], size[2]
    chance = zlib.crc32(b"%d %d" % (seed, number))
    with Image.open(io.BytesIO(encoded)) as image:
        left = chance % (image.width - width + 1)
        top = (chance >> 8) % (image.height - height + 1)
        part = image.convert("RGB").crop((left, top, left + width, top + height))
    if chance >> 31:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return part.tobytes()
