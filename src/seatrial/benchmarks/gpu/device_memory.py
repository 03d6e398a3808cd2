"""gpu.device-memory: how fast a device reads and writes its memories, with the access patterns of SHOC's DeviceMemory
(A. Danalis et al., "The Scalable Heterogeneous Computing (SHOC) Benchmark Suite", GPGPU-3, 2010).

Global memory in words of 4 B: adjacent items access adjacent words, or each accesses its own run of 512 words, so that
adjacent items are 2 KiB apart. Local (CUDA: shared) memory: 16 KiB per group of 256 items, adjacent items in adjacent
banks. Textures of four fp32 channels, 16 B: groups of 16 x 16 items read along the row, in a square of 4 KiB, or across
the image (x becomes 3 x + 29, y becomes 5 y + 11).

Copy and triad of global memory as BabelStream defines them (T. Deakin et al., "Evaluating attainable memory bandwidth
of parallel programming models via BabelStream", Int. J. Computational Science and Engineering 17(3), 2018): c = a and
a = b + s c of fp32 numbers, arrays of `size` each, 2 and 3 times 4 B counted for an element.

SHOC reads 64 MiB, or textures of 16 KiB to 4 MiB, repeatedly; here a run reads every word of `size` once, and an image
of the same size. With the image there are 8 arrays; where items take runs of 512 words, only the largest has one for
each item of a whole GPU. SHOC adds up one channel of a texel; here all four are added up, so that no compiler can read
less than is counted.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.benchmark import Figure, LimitOf, Role
from seatrial.model.benchmark.parameter import Parameter


def _kind(series: str, work: str, limit: LimitOf | None = None, role: Role | None = None) -> tuple[Figure, ...]:
    return device.rates(series, "B/s", work, limit=limit, role=role)


def _texture(series: str, work: str) -> tuple[Figure, ...]:
    def only_with_textures(figure: Figure) -> Figure:
        return replace(figure, is_there=lambda params: bool(params["textures"]) and figure.is_there(params))

    return tuple(only_with_textures(figure) for figure in _kind(series, work))


_ROLE = Role.DEVICE_MEMORY_BANDWIDTH
_FROM_CACHE = "16 B per texel read, most of them from a cache"

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.device-memory",
    question="How fast does a device read and write its global, local and texture memory?",
    parameters=(
        device.mode_among("S", "EP"),
        device.size_class(
            device.ARRAY_B,
            "size of each array and of the image; 1 to 4: 1, 8, 32 and 64 MiB (4: as SHOC); large: 1 GiB",
            "--bytes",
        ),
        Parameter.switch(
            "textures", True, "also read images; set false for devices without image support", option="--textures"
        ),
    ),
    figures=(
        *_kind(
            "read",
            "each word is read once, neighbouring words by neighbouring work items",
            memory_limit(device.array_bytes),
            _ROLE,
        ),
        *_kind(
            "write",
            "each word is written once, neighbouring words by neighbouring work items",
            memory_limit(device.array_bytes),
            _ROLE,
        ),
        *_kind("read_strided", "each word is read once, neighbouring work items 2 KiB apart"),
        *_kind("write_strided", "each word is written once, neighbouring work items 2 KiB apart"),
        *_kind(
            "copy",
            "each of 2 arrays is read or written once",
            memory_limit(lambda params: 2 * device.array_bytes(params)),
        ),
        *_kind(
            "triad",
            "each of 3 arrays is read or written once",
            memory_limit(lambda params: 3 * device.array_bytes(params)),
        ),
        *_kind("local_read", "4 B per word read from local memory"),
        *_kind("local_write", "4 B per word written to local memory"),
        *_texture("texture_linear", _FROM_CACHE),
        *_texture("texture_cached", "16 B per texel read, all within 4 KiB"),
        *_texture("texture_random", "16 B per texel read"),
    ),
    error="sums and words that differ from the host's, compared exactly",
    estimate_s=lambda params: 4.0 + device.array_bytes(params) * 4e-8,
    trial=({"mode": "EP"},),
)
