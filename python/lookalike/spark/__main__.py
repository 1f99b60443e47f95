"""``python -m lookalike.spark`` runs the command for ``spark-submit``."""

import sys

from lookalike.spark._command import main

if __name__ == "__main__":
    sys.exit(main())
