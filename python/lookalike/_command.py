"""The command ``lookalike`` installed by the wheel."""

from __future__ import annotations

import signal
import sys


def main() -> int:
    """Run the command with the arguments in ``sys.argv`` and return its exit status."""
    from lookalike import _lookalike

    # The command handles signals itself, as in the program: Python would only handle them when the command is done.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_DFL)
    return _lookalike.command(["lookalike", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
