"""``python -m tilegrad.bench``: the same as ``tilegrad bench``."""

import sys

from ..__main__ import main

sys.exit(main(["bench", *sys.argv[1:]]))
