"""Which Debian packages are missing, and the line that installs them."""

from __future__ import annotations

from pathlib import Path

from tests.rig.real_node.packages import advice, missing


def test_a_package_without_one_of_its_programs_is_missing(tmp_path: Path) -> None:
    """What is no command counts where it lies."""
    plugin = tmp_path / "bridge"
    plugin.touch()
    table = {
        "here": ("sh", str(plugin)),
        "not-here": ("sh", "no-such-program"),
        "nor-there": (str(tmp_path / "portmap"),),
    }

    assert missing(table) == ["not-here", "nor-there"]


def test_what_is_missing_is_told_with_the_line_to_type() -> None:
    """Nothing is installed unasked."""
    assert advice(["runc", "curl"]).endswith("--no-install-recommends runc curl")
