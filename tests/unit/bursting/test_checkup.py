"""What is worst is told last."""

from vk_provider.bursting.checkup import Advice, Level


def test_levels_are_ordered_from_good_to_bad() -> None:
    """The order in which a person reads upwards from the prompt."""
    assert sorted(Level, key=lambda level: level.rank) == [
        Level.OK,
        Level.NOTE,
        Level.WARNING,
        Level.ERROR,
    ]
    assert Advice(Level.OK, "a", "b").remedy == ""
