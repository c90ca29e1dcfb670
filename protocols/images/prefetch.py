"""Work that background threads do in advance, with the results in order."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def done_ahead(work: Callable[[Item], Result], items: Iterable[Item], threads: int) -> Iterator[Result]:
    """Yield `work(item)` for every item in order, with later items computed in advance.

    The items are drawn one after another in the caller's thread. Random numbers that they draw are therefore the same
    for every number of threads. An error in `work` is raised when the result of its item is due.

    Args:
        work: Computes one result; runs in a background thread.
        items: The items.
        threads: Number of items in advance; 0 computes each result in the caller's thread when it is needed.

    Yields:
        The results, in the order of the items.
    """
    if threads == 0:
        yield from map(work, items)
        return
    pool = ThreadPoolExecutor(threads)
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
