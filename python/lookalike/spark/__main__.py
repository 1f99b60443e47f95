"""``python -m lookalike.spark`` is the command for ``spark-submit``."""

import sys

from lookalike.spark._command import main

if __name__ == "__main__":
    sys.exit(main())
