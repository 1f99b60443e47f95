"""Acts as a person who labels pairs on a pseudo-terminal: python3 - BINARY INPUT PAIRS LABELS."""

import os
import pty
import select
import signal
import sys
import time

binary, documents, pairs, answers = sys.argv[1:]
QUESTION = "in full [q]uit > "


class Session:
    def __init__(self, *flags, **environment):
        self.seen = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.pop("NO_COLOR", None)
            os.environ.update(environment, TERM="xterm-256color")
            os.execv(binary, [binary, "evaluate", "label", documents, "--pairs", pairs, "-o", answers, *flags])

    def read(self):
        """Reads the available output. Returns False at the end."""
        try:
            piece = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.seen += piece.decode()
        return bool(piece)

    def wait_for(self, words):
        """Returns everything up to the next occurrence of these words."""
        end = time.monotonic() + 60
        while words not in self.seen:
            ready, _, _ = select.select([self.terminal], [], [], 1)
            assert time.monotonic() < end, f"{words!r} did not come: {self.seen!r}"
            assert not ready or self.read(), f"ended without {words!r}: {self.seen!r}"
        before, self.seen = self.seen.split(words, 1)
        return before

    def press(self, key):
        os.write(self.terminal, key.encode())

    def end(self):
        while self.read():
            pass
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


def lines():
    with open(answers, encoding="utf-8") as file:
        return file.read().splitlines()


# Output is coloured, and each label is on disk before the next question.
person = Session()
shown = person.wait_for(QUESTION)
assert "pair 1 of 8" in shown and "\x1b[31m- " in shown and "\x1b[32m+ " in shown, shown
person.press("t")
assert "pair 2 of 8" in person.wait_for(QUESTION)
assert len(lines()) == 1
person.press("f")
person.wait_for(QUESTION)
# A label is undone and replaced; an unknown key does nothing.
person.press("b")
assert "pair 2 of 8" in person.wait_for(QUESTION)
assert len(lines()) == 1
person.press("x")
person.wait_for(QUESTION)
person.press("u")
assert "pair 3 of 8" in person.wait_for(QUESTION)
# After a kill, the labels are still there.
os.kill(person.pid, signal.SIGKILL)
assert person.end() == -signal.SIGKILL
assert len(lines()) == 2

# A second run continues, with a short view and then the whole difference, and without colour if the environment asks for that.
person = Session("--lines", "1", NO_COLOR="1")
shown = person.wait_for(QUESTION)
assert "pair 3 of 8" in shown and "more lines" in shown and "\x1b[31m" not in shown, shown
# Two processes adding labels to one file would overwrite each other.
second = Session()
second.wait_for("another process is adding labels")
assert second.end() == 1
person.press("d")
assert "end" in person.wait_for(QUESTION)
person.press("f")
person.wait_for(QUESTION)
person.press("\x03")
person.end()
assert len(lines()) == 3

person = Session()
for key in "ttfft":
    person.wait_for(QUESTION)
    person.press(key)
person.wait_for("8 of 8 pairs labelled: 4 true, 3 false, 1 unknown")
assert person.end() == 0
