"""What counts as what, by the configuration if one is given. Fed by ``-f``; feeds the checkups."""

from __future__ import annotations

from collections.abc import Sequence

from vk_provider.bursting.picture import Selection
from vk_provider.settings_file import load_settings


def selection_of(files: Sequence[str]) -> Selection:
    """The selection of the Bursting document; the defaults without one. Raises ConfigError."""
    settings = load_settings(files).bursting if files else None
    return settings.selection if settings is not None else Selection()
