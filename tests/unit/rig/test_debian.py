"""Programs of Debian packages: one that is there already is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.rig import debian


def test_a_program_on_path_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever has one need not download another."""
    program = tmp_path / "promtool"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert debian.program("prometheus", "promtool") == program


def test_an_unpacked_one_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the cache, without asking anybody."""
    program = tmp_path / "bin" / "prometheus-deb" / "usr" / "bin" / "promtool"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("VK_PROVIDER_CACHE", str(tmp_path))

    assert debian.program("prometheus", "promtool") == program
