"""The composition root: everything below is put together here and nowhere else.

``process`` is the whole program, ``virtual_node`` one node of it. Fed by ``cli``.
"""

from __future__ import annotations

from vk_provider.app.process import run

__all__ = ["run"]
