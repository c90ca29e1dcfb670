"""Imports libraries in less time."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quick_imports() -> Iterator[None]:
    """Import within the block without searches for garbage.

    Libraries make hundreds of thousands of objects when they are imported, and hardly any of them is garbage. They are
    set aside at the end of the block: no later search looks at them, nor the one at the end of the process. If all
    modules were imported before, nothing is set aside.
    """
    enabled, modules = gc.isenabled(), len(sys.modules)
    gc.disable()
    try:
        yield
    finally:
        if len(sys.modules) > modules:
            gc.freeze()
        if enabled:
            gc.enable()
