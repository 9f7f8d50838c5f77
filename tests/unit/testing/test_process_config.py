"""The process provider's configuration block is read field by field."""

from __future__ import annotations

from pathlib import Path

import pytest

from vk_provider.faults import ConfigError, FieldProblem
from vk_provider.testing.process_config import ProcessConfig, parse_config


def problems(block: dict[str, object]) -> list[str]:
    """What is wrong with a block."""
    with pytest.raises(ConfigError) as raised:
        parse_config(block, "config")
    return [str(each) for each in raised.value.problems]


def test_an_empty_block_is_complete() -> None:
    """Everything has a default."""
    assert parse_config({}, "config") == ProcessConfig()


def test_every_field_is_read(tmp_path: Path) -> None:
    """Under its own name."""
    block = {
        "service": "one",
        "images": {"busybox": ["sh", "-c"], "web": "python -m 'http server'"},
        "mapPorts": True,
        "folder": str(tmp_path),
        "path": "/bin",
        "logBytes": 8192,
        "capacity": {"cpu": 4},
        "faultsFile": "faults.json",
        "address": "10.0.0.9",
    }

    parsed = parse_config(block, "config")

    images = {"busybox": ("sh", "-c"), "web": ("python", "-m", "http server")}
    assert parsed == ProcessConfig(
        "one", images, True, tmp_path, "/bin", 8192, {"cpu": "4"}, "faults.json", "10.0.0.9"
    )


def test_all_problems_are_told_at_once() -> None:
    """With their paths and what is allowed."""
    found = problems({"folder": "/no/such/folder", "images": {"a": [], "b": 3}, "mapPort": True})

    assert [each.partition(":")[0] for each in found] == [
        "config.images.a",
        "config.images.b",
        "config.mapPort",
        "config.folder",
    ]
    assert 'did you mean "mapPorts"' in found[2]


def test_problems_are_field_problems() -> None:
    """As everywhere."""
    with pytest.raises(ConfigError) as raised:
        parse_config({"logBytes": 1}, "config")

    assert all(isinstance(each, FieldProblem) for each in raised.value.problems)


@pytest.mark.parametrize(
    ("image", "entrypoint"),
    [
        ("busybox", ("sh",)),
        ("busybox:1.36", ("sh",)),
        ("busybox:1.36@sha256:00", ("sh",)),
        ("host:5000/app", ("app",)),
        ("host:5000/app:2", ("app", "2")),
        ("host:5000/app:3", ("app",)),
        ("other", ()),
    ],
)
def test_an_image_stands_for_its_entrypoint(image: str, entrypoint: tuple[str, ...]) -> None:
    """With its tag first, then without; a registry's port is no tag."""
    config = ProcessConfig(
        images={"busybox": ("sh",), "host:5000/app": ("app",), "host:5000/app:2": ("app", "2")}
    )

    assert config.entrypoint(image) == entrypoint
