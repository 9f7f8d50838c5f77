"""Progress lines for steps that may be slow, so that nobody stares at a silent terminal."""

from __future__ import annotations

import sys
import time

SECONDS_BETWEEN_LINES = 10.0


def say(text: str) -> None:
    """Print one progress line to the real stderr (pytest's capture would hide it until the end)."""
    stream = sys.__stderr__ or sys.stderr
    stream.write(f"[rig] {text}\n")
    stream.flush()


class Progress:
    """Says what is going on and for how long: silent for the first ten seconds, then every ten."""

    def __init__(self, what: str) -> None:
        self.what = what
        self._start = time.monotonic()
        self._next = SECONDS_BETWEEN_LINES

    @property
    def elapsed(self) -> float:
        """Seconds since the step began."""
        return time.monotonic() - self._start

    def tick(self) -> None:
        """Print a line if one is due; call it as often as you like."""
        if self.elapsed >= self._next:
            self._next += SECONDS_BETWEEN_LINES
            say(f"{self.what} ... {self.elapsed:.0f} s")

    def done(self) -> None:
        """Close the step with its duration, if it was slow enough to have been mentioned."""
        if self.elapsed >= SECONDS_BETWEEN_LINES:
            say(f"{self.what}: done in {self.elapsed:.0f} s")
