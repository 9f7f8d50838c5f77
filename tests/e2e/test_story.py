"""The whole story in real components, as people run it; and that its observer catches a loss."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests.rig.recipes import CONTROL_PLANE

PROGRAMS = (*CONTROL_PLANE, "kwok", "kueue", "descheduler")
PNG = b"\x89PNG"


async def _play(*flags: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.story",
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


@pytest.mark.timeout(600)
async def test_story_holds(tmp_path: Path) -> None:
    """Out in time, home at the configured pace, still while the signal lies, and the bill stops;
    with the AdmissionCheck never fewer than 14 of 16 Ready, in either direction."""
    code, printed = await _play("--pictures", str(tmp_path))

    assert code == 0, printed
    assert printed.count("All of it held.") == 2
    assert "never fewer than 14 replicas Ready in either direction" in printed
    for mode in ("plain", "admission-check"):
        assert (tmp_path / f"story-{mode}.png").read_bytes().startswith(PNG)
        assert "<svg" in (tmp_path / f"story-{mode}.svg").read_text()


@pytest.mark.timeout(600)
async def test_training_may_come_again_on_the_way_home(tmp_path: Path) -> None:
    """Who was home already goes out again as fast, and then all come home."""
    code, printed = await _play("--mode", "plain", "--again", "--pictures", str(tmp_path))

    assert code == 0, printed
    assert "16 preempted the first time, 4 the second" in printed


@pytest.mark.timeout(600)
async def test_a_planted_loss_is_caught(tmp_path: Path) -> None:
    """A story that cannot fail would show nothing: one replica more than may move is deleted."""
    code, printed = await _play("--mode", "plain", "--plant-loss", "--pictures", str(tmp_path))

    assert code == 1, printed
    assert "FAILED  never more than 2 replicas on their way home at once" in printed
    assert "at most 3" in printed
