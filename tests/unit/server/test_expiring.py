"""A bounded memory that forgets in time."""

from vk_provider.server.expiring import Expiring


class Clock:
    """A clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        """The time it was set to."""
        return self.now


def test_an_answer_is_forgotten_after_its_time() -> None:
    """Rights that were withdrawn end."""
    clock = Clock()
    memory: Expiring[str, bool] = Expiring(10, clock)
    memory.put("a", True, 5)
    assert memory.get("a") == (True,)
    clock.now = 5
    assert memory.get("a") is None
    assert len(memory) == 0


def test_the_least_used_goes_first() -> None:
    """A flood of strangers does not grow the memory."""
    memory: Expiring[str, None] = Expiring(2, Clock())
    memory.put("a", None, 5)
    memory.put("b", None, 5)
    memory.get("a")
    memory.put("c", None, 5)
    assert memory.get("b") is None
    assert memory.get("a") == (None,)
