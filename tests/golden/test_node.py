"""Golden pairs of a Node: input.yaml in, node.yaml out (with its status and annotations)."""

from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.golden.conftest import Golden
from vk_provider.node.describe import BackendView
from vk_provider.node.object import NodeSpec, NodeView, annotations_patch, node_status, render_node
from vk_provider.node.status_patch import node_status_patch

CASES = sorted(path.parent for path in Path(__file__).parent.glob("node/*/input.yaml"))


def read(case: Path) -> tuple[NodeSpec, NodeView, datetime]:
    """The configuration, what the status depends on, and the time."""
    fields = yaml.safe_load((case / "input.yaml").read_text())
    view = fields.get("view", {})
    view["backends"] = tuple(BackendView(**one) for one in view.get("backends", []))
    view["in_use"] = {name: Fraction(used) for name, used in view.get("in_use", {}).items()}
    if "closed_until" in view:
        view["closed_until"] = datetime.fromisoformat(view["closed_until"])
    return NodeSpec(**fields["spec"]), NodeView(**view), datetime.fromisoformat(fields["now"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_node(case: Path, golden: Golden) -> None:
    """The rendered Node is the kept one, and holding it there is nothing more to write."""
    spec, view, now = read(case)
    node: dict[str, Any] = render_node(spec)
    notes = annotations_patch(node, view)
    assert notes is not None
    node["metadata"]["annotations"] |= notes["metadata"]["annotations"]
    node["status"] = node_status(spec, view, now)

    golden(case / "node.yaml", node)
    again = node_status(spec, view, now, node["status"])
    assert node_status_patch(node, again) is None
    assert annotations_patch(node, view) is None


def test_there_are_cases() -> None:
    """A case that lost its input.yaml would vanish unseen."""
    assert len(CASES) >= 4
