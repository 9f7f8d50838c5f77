"""``python -m vk_provider_runpod.simulator``: the simulator alone, with the same flags."""

import argparse
import asyncio

from vk_provider_runpod.simulator.serve import add_arguments, serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="vk-provider simulate runpod", description=__doc__)
    add_arguments(parser)
    asyncio.run(serve(parser.parse_args()))
