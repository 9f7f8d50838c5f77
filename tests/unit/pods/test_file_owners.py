"""Owners of files are found wherever a volume names them."""

from vk_provider.pods.file_owners import file_owners


def test_owners_are_found_at_any_depth() -> None:
    """The default, and one file's own."""
    source = {
        "defaultUser": 1000,
        "sources": [
            {"secret": {"name": "user", "items": [{"key": "a", "path": "a", "user": 0}]}},
            {"configMap": {"name": "b", "items": [{"key": "a", "path": "a", "user": None}]}},
        ],
    }

    assert list(file_owners(source, "spec.volumes[2].projected")) == [
        "spec.volumes[2].projected.defaultUser",
        "spec.volumes[2].projected.sources[0].secret.items[0].user",
    ]
