"""``python -m vk_provider_modal.simulator``: the simulator alone, with the same flags."""

import argparse
import sys

from vk_provider_modal.simulator.serve import add_arguments, run

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="vk-provider simulate modal", description=__doc__)
    add_arguments(parser)
    sys.exit(run(parser.parse_args()))
