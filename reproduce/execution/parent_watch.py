"""Ends a worker process when its parent ends. A parent that was killed cannot end its workers itself."""

import multiprocessing
import os
import threading


def end_with_parent() -> None:
    """Start a thread that ends this process as soon as its parent has ended. Call it in a worker when it starts."""
    threading.Thread(target=_wait_for_parent, daemon=True).start()


def _wait_for_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
