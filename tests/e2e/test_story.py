"""The story's observer catches a loss. That all of it holds, both ways, is what `make story` runs:
it takes as long as a third of all other end-to-end tests."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.rig.recipes import CONTROL_PLANE

PROGRAMS = (*CONTROL_PLANE, "kwok", "kueue", "descheduler")


@pytest.mark.timeout(600)
async def test_a_planted_loss_is_caught(tmp_path: Path) -> None:
    """A story that cannot fail would show nothing: one replica more than may move is deleted."""
    flags = ["--mode", "plain", "--plant-loss", "--pictures", str(tmp_path)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.story", *flags,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    printed = (await process.communicate())[0].decode()

    assert process.returncode == 1, printed
    assert "FAILED  never more than 2 replicas on their way home at once" in printed
    assert "at most 3" in printed
