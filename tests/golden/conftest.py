"""Golden files: what is rendered must be what is kept, or is rewritten with --update-golden."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

Golden = Callable[[Path, Any], None]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Rewriting is asked for, never done by itself."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        default=False,
        help="write what is rendered to the golden files; review the difference before a commit",
    )


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden(path, value)``: the YAML file must hold exactly this JSON value."""
    update = bool(request.config.getoption("--update-golden", default=False))

    def check(path: Path, value: Any) -> None:
        if update:
            path.write_text(yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=100))
        if not path.exists():
            pytest.fail(f"{path.name} is missing: run with --update-golden and review it")
        assert value == yaml.safe_load(path.read_text())

    return check
