"""``python -m tests.fields`` (``make fields``): write the tables of fields into ``docs/``."""

from tests.fields.pages import DOCS, PAGES, page

for name in PAGES:
    (DOCS / name).write_text(page(name), encoding="utf-8")
