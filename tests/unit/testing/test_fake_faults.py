"""Faults that another process asks for by a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vk_provider.faults import OutOfCapacityError, UnavailableError
from vk_provider.testing.fake_faults import Script


def test_a_file_switches_faults_on_and_off(tmp_path: Path) -> None:
    """It is read on every call, and no file means no fault."""
    file = tmp_path / "faults.json"
    script = Script(str(file))
    script.check("create")

    file.write_text('{"create": "OutOfCapacity", "list": "ProviderUnavailable"}')
    with pytest.raises(OutOfCapacityError):
        script.check("create")
    with pytest.raises(UnavailableError):
        script.check("list")
    script.check("delete")

    file.unlink()
    script.check("create")
