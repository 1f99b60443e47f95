"""Runs a command on a pseudo-terminal: python3 - COLUMNS BINARY ARGUMENTS...

Prints every line that was drawn, once and without colours, and ends with the status of the command.
"""

import fcntl
import os
import pty
import re
import struct
import sys
import termios

columns, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(columns), 0, 0))
    os.environ["TERM"] = "xterm-256color"
    os.execv(command[0], command)
seen = b""
while True:
    try:
        piece = os.read(terminal, 65536)
    except OSError:
        break
    if not piece:
        break
    seen += piece
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
# Treat every movement of the cursor as a line end, so that a line is what was drawn at once.
moved = re.sub(r"\x1b\[[0-9;?]*[A-HJKSTfhl]", "\n", seen.decode())
# Lines are padded with blanks to the width of the terminal.
lines = [line.rstrip() for line in re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;]*m", "", moved))]
for line in dict.fromkeys(line for line in lines if line):
    print(line)
sys.exit(status)
