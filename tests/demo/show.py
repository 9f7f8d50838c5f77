"""What the audience sees: headings, commands with their output, and the seconds that passed.

Fed by the acts; writes to standard output.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import Any

from tests.rig.control_plane import ControlPlane


class Show:
    """Prints plainly; bold headings on a terminal."""

    def __init__(self, bed: ControlPlane, begun: float) -> None:
        self._bed = bed
        self._begun = begun
        self._colour = sys.stdout.isatty()

    def act(self, title: str) -> None:
        """A heading with the time since the start."""
        passed = time.monotonic() - self._begun
        self._print(self._bold(f"\n=== {title}  ({passed:.0f} s)"))

    def say(self, sentence: str) -> None:
        """One line of narration."""
        self._print(f"--- {sentence}")

    def text(self, block: str) -> None:
        """A manifest or the like, indented."""
        self._print("\n".join(f"    {line}" for line in block.splitlines()))

    async def kubectl(self, *arguments: str) -> str:
        """Run a command as the audience would, and show it with what it prints."""
        self._print(self._bold(f"$ kubectl {' '.join(arguments)}"))
        printed = await self._bed.kubectl(*arguments)
        self._print(printed.rstrip())
        return printed

    def bill(self, ledger: Mapping[str, Any]) -> str:
        """The ledger in one sentence."""
        return f"{len(ledger['charges'])} instances, {ledger['usd']:.4f} USD in simulated money"

    def _bold(self, text: str) -> str:
        return f"\033[1m{text}\033[0m" if self._colour else text

    def _print(self, text: str) -> None:
        sys.stdout.write(f"{text}\n")
        sys.stdout.flush()
