"""What a new provider's folder holds, under any name."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from vk_provider.faults import ConfigError
from vk_provider.scaffold import new_provider


def text_of(files: tuple[Path, ...]) -> str:
    """All of it."""
    return "".join(path.read_text() for path in files)


def test_it_is_five_files_of_less_than_four_hundred_lines(tmp_path: Path) -> None:
    """So little is a whole provider with its tests."""
    files = new_provider("acme", tmp_path)

    assert [str(path.relative_to(tmp_path)) for path in files] == [
        "pyproject.toml",
        "vk_provider_acme/client.py",
        "vk_provider_acme/translate.py",
        "vk_provider_acme/provider.py",
        "tests/test_contract.py",
    ]
    assert text_of(files).count("\n") < 400


def test_the_name_is_everywhere_in_its_own_form(tmp_path: Path) -> None:
    """As package, class, variable, distribution and entry point."""
    files = new_provider("big-iron", tmp_path)

    project = tomllib.loads(files[0].read_text())["project"]
    assert project["name"] == "vk-provider-big-iron"
    assert project["entry-points"]["vk_provider.providers"] == {
        "big-iron": "vk_provider_big_iron.provider:factory"
    }
    found = text_of(files)
    assert "class BigIronProvider:" in found
    assert 'setenv("BIG_IRON_TOKEN"' in found
    assert "acme" not in found.lower()


@pytest.mark.parametrize("name", ["", "Acme", "2fast", "a_b", "a--b", "-a", "../a", "a" * 31])
def test_a_name_that_can_be_none_is_refused(tmp_path: Path, name: str) -> None:
    """With what is allowed, and before anything is written."""
    with pytest.raises(ConfigError, match="small letters and digits"):
        new_provider(name, tmp_path)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("place", ["", "vk_provider_acme", "tests"])
def test_a_file_in_the_place_of_a_folder_is_refused_before_anything_is_written(
    tmp_path: Path, place: str
) -> None:
    """Half a provider would be worse than none."""
    into = tmp_path / "new"
    (into / place).parent.mkdir(exist_ok=True)
    (into / place).write_text("mine")

    with pytest.raises(ConfigError, match="is no folder"):
        new_provider("acme", into)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [place or "new"]


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Somebody may have worked on it."""
    new_provider("acme", tmp_path)
    (tmp_path / "pyproject.toml").write_text("mine")
    (tmp_path / "tests/test_contract.py").unlink()

    with pytest.raises(ConfigError, match="is there already; choose another --into"):
        new_provider("acme", tmp_path)

    assert (tmp_path / "pyproject.toml").read_text() == "mine"
    assert not (tmp_path / "tests/test_contract.py").exists()
