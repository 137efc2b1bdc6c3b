"""``python -m tilegrad.bench``: the same as ``tilegrad bench``."""

import sys

from ..__main__ import main

if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
