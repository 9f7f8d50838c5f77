"""When Python looks for garbage in circles: rarely while a node runs, and after each of its terms.

Fed by ``app.process`` (once) and by whoever leads.
"""

from __future__ import annotations

import gc


def relax() -> None:
    """A pod is hundreds of small objects that live as long as it does. Looking at all of them over
    and over took a tenth of the node's time, and found next to nothing."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)


def forget_the_past() -> None:
    """A term is over: all that it knew hangs together in circles, and by itself the collector
    would not look at it for months. The next term makes all of it anew."""
    gc.collect()
