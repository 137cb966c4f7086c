"""Shows what a person sees who runs a program on a terminal; run by an interpreter that has the
package pyte.

screen.py COLUMNS ROWS [--interrupt-after TEXT | --interrupt-twice-after TEXT] COMMAND...

Prints JSON: the exit status; the last lines of each screen that the program used (the alternate one
of xterm); and the rest of its output, before and after. --interrupt-after presses Ctrl-C when TEXT
has been written; --interrupt-twice-after does so again half a second later.
"""

import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
import time

import pyte

TAKE, GIVE_BACK = "\033[?1049h", "\033[?1049l"


def run(columns, rows, after, interrupts, command):
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        os.execvp(command[0], command)
    output = b""
    while True:
        try:
            output += os.read(terminal, 65536)
        except OSError:  # EIO: the program has ended
            break
        while interrupts and after in output:
            os.write(terminal, b"\x03")
            interrupts -= 1
            time.sleep(0.5 if interrupts else 0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), output.decode()


def shown(columns, rows, text):
    screen = pyte.Screen(columns, rows)
    pyte.Stream(screen).feed(text)
    return {"lines": screen.display, "cursor_hidden": screen.cursor.hidden}


def main(columns, rows, *command):
    after, interrupts = b"", {"--interrupt-after": 1, "--interrupt-twice-after": 2}.get(command[0], 0)
    if interrupts:
        after, command = command[1].encode(), command[2:]
    status, output = run(int(columns), int(rows), after, interrupts, command)
    taken = re.escape(TAKE) + "(.*?)" + re.escape(GIVE_BACK)
    screens = [shown(int(columns), int(rows), text) for text in re.findall(taken, output, re.DOTALL)]
    print(json.dumps({"status": status, "screens": screens, "besides": re.sub(taken, "", output, flags=re.DOTALL)}))


main(*sys.argv[1:])
