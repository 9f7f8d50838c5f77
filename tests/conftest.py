"""What holds for every suite: no socket in the pure ones, no task left behind in any."""

import asyncio
import gc
import inspect
from collections.abc import AsyncIterator
from pathlib import Path

import hypothesis
import pytest

# Thousands of collected tests are looked at again and again otherwise: a sixth of a pure suite.
gc.set_threshold(50_000, 20, 100)

TESTS = Path(__file__).parent
WITHOUT_SOCKETS = (TESTS / "unit", TESTS / "golden")

# Failures of the shipped contract suite show their values, as those of our own tests do.
pytest.register_assert_rewrite(
    "vk_provider.testing.contract",
    "vk_provider.testing.contract_exec",
    "vk_provider.testing.contract_streams",
)

# The rig's fixtures start the control plane only for a test that asks for one.
pytest_plugins = ["tests.rig.plugin"]


@pytest.fixture
async def no_task_left() -> AsyncIterator[None]:
    """A test that leaves a task behind fails, since so would a node that is asked to stop."""
    before = asyncio.all_tasks()
    yield
    left = asyncio.all_tasks() - before - {asyncio.current_task()}
    running = [str(task.get_coro()) for task in left if not task.done()]
    assert not running, f"tasks left behind: {running}"


# The same examples in every run: what CI finds, everybody finds. `make fuzz` looks further.
hypothesis.settings.register_profile("suite", derandomize=True, max_examples=32, deadline=None)
hypothesis.settings.load_profile("suite")


def pytest_configure() -> None:
    """Say that the main thread has no loop."""
    # Merely asked for one that was never set, Python before 3.14 makes it, and nobody closes it.
    asyncio.set_event_loop(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Close the sockets of the pure suites, and watch the tasks of every coroutine test."""
    for item in items:
        if any(folder in item.path.parents for folder in WITHOUT_SOCKETS):
            item.add_marker("disable_socket")
        if isinstance(item, pytest.Function) and inspect.iscoroutinefunction(item.function):
            # First in, so that it is torn down last, after the fixtures that own tasks.
            item.fixturenames.insert(0, "no_task_left")
