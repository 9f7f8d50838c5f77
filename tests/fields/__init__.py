"""The tables of fields in the documentation: what becomes of each field of a pod, by provider.

Those of RunPod and Modal are found out by asking the providers (see
``vk_provider.testing.field_probe``), that of another cluster is its translation's own table. Fed by
the code; ``python -m tests.fields`` writes them, and a golden test fails when they are out of date.
"""

from tests.fields.pages import PAGES, page

__all__ = ["PAGES", "page"]
