"""The demo notices when what it shows is not so: the same commands that people run."""

from __future__ import annotations

import asyncio
import sys

import pytest


async def _play(*flags: str) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.demo",
        *flags,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    printed, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, printed.decode()


async def test_demo_shows_everything_and_ends_with_0() -> None:
    """Every act of the demo holds."""
    code, printed = await _play()

    assert code == 0, printed
    assert "All of it held." in printed


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--without-kill", "Failed"),
        ("--without-refusal", "the node closes"),
    ],
)
async def test_demo_ends_with_1_when_a_misfortune_does_not_happen(flag: str, expected: str) -> None:
    """A demo that cannot fail would show nothing."""
    code, printed = await _play(flag)

    assert code == 1, printed
    assert "expected within" in printed
    assert expected in printed
