"""Keeps freed memory for the next allocation, which makes a training on a CPU faster and changes no number.

Every layer of a network allocates its result. glibc hands large blocks back to the system at once, and the system fills
each new one with zeros. In a training this happens thousands of times for the same sizes.
"""

import ctypes
import platform

LARGEST_BLOCK = 2**30
"""Largest block in bytes that is kept; larger ones go back to the system at once."""

MOST_KEPT = 2**31 - 1
"""Most bytes of free memory at the end of the heap that are kept."""

# Parameters of mallopt, from glibc's malloc.h.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> bool:
    """Let this process keep freed memory, up to `MOST_KEPT` and what lies between blocks in use.

    Returns:
        Whether it does; only glibc can be told so.
    """
    if platform.libc_ver()[0] != "glibc":
        return False
    set_option = ctypes.CDLL(None).mallopt
    return bool(set_option(_MMAP_THRESHOLD, LARGEST_BLOCK) and set_option(_TRIM_THRESHOLD, MOST_KEPT))
