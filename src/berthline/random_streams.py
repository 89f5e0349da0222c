"""Counter-based random numbers: a draw depends on its key and counters, never on earlier draws.

A key names a stream, (seed, stream name); a draw adds counters, such as the job. So a job's numbers
do not depend on other jobs, threads or batches. The mixing function is SplitMix64's finaliser
(Steele, Lea and Flood, OOPSLA 2014); `native/src/core/random.h` does the same in C++.
"""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

_MASK = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


def stream_key(seed: int, name: str) -> int:
    """Return the 64-bit key of a named stream."""
    digest = hashlib.blake2b(f"{seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def uniform(key: int, first: int, second: int = 0) -> float:
    """Return a number in [0, 1) for the counters (first, second) of a stream."""
    bits = _mix(_mix((key + _STEP * (first + 1)) & _MASK) + _STEP * (second + 1) & _MASK)
    return (bits >> 11) * 2.0**-53


def uniform_column(key: int, size: int) -> npt.NDArray[np.float64]:
    """Return `[uniform(key, i) for i in range(size)]`."""
    return uniform_at(key, np.arange(size, dtype=np.uint64))


def uniform_at(key: int, first: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return `[uniform(key, i) for i in first]`."""
    step = np.uint64(_STEP)
    bits = _mix_array(np.uint64(key) + step * (first + np.uint64(1)))
    return (_mix_array(bits + step) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def bits_at(
    key: int, first: npt.NDArray[np.uint64], second: npt.NDArray[np.uint64]
) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for each pair of counters: `uniform` is the top 53 of them."""
    one, step = np.uint64(1), np.uint64(_STEP)
    bits = _mix_array(np.uint64(key) + step * (first + one))
    return _mix_array(bits + step * (second + one))


def uniform_columns(key: int, first: int, size: int) -> npt.NDArray[np.float64]:
    """Return `[uniform(key, first, i) for i in range(size)]`."""
    start = np.uint64(_mix((key + _STEP * (first + 1)) & _MASK))
    bits = _mix_array(start + np.uint64(_STEP) * np.arange(1, size + 1, dtype=np.uint64))
    return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def text_numbers(texts: npt.NDArray[np.str_]) -> npt.NDArray[np.uint64]:
    """Return a number for each text, which depends on nothing but its characters."""
    width = texts.dtype.itemsize // 4
    characters = np.ascontiguousarray(texts).view(np.uint32).reshape(len(texts), width)
    numbers = np.zeros(len(texts), np.uint64)
    for column in characters.T.astype(np.uint64):
        # Shorter texts are padded with zeros to the length of the longest.
        mixed = _mix_array(numbers + np.uint64(_STEP) * (column + np.uint64(1)))
        numbers = np.where(column > 0, mixed, numbers)
    return numbers


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def _mix_array(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
