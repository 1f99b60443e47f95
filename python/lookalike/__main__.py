"""``python -m lookalike`` runs the command ``lookalike``."""

import sys

from lookalike._command import main

if __name__ == "__main__":
    sys.exit(main())
