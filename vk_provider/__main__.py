"""``python -m vk_provider``: the command line without its script. Feeds :mod:`vk_provider.cli`."""

import sys

from vk_provider.cli import main

if __name__ == "__main__":
    sys.exit(main())
