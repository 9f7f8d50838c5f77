"""vk-provider: a node that is not there. Inference pods burst to outside GPUs.

The names imported here, with :mod:`vk_provider.testing`, are the compatibility promise to
third-party providers; everything else may change.
"""

from __future__ import annotations

__version__ = "0.1.0"
