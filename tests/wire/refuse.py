"""Runs a command whose system call CALL, and that of all that it starts, fails with ERROR, as a sandbox has it:

    python3 refuse.py CALL ERROR COMMAND...
"""

import ctypes
import errno
import os
import sys

ALLOW, REFUSE = 0x7FFF0000, 0x00050000  # seccomp_init(3)


def main():
    call, error, *command = sys.argv[1:]
    library = ctypes.CDLL("libseccomp.so.2", use_errno=True)
    library.seccomp_init.restype = ctypes.c_void_p
    number = library.seccomp_syscall_resolve_name(call.encode())
    rules = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(ALLOW)))
    refused = library.seccomp_rule_add(rules, ctypes.c_uint32(REFUSE | getattr(errno, error)), number, 0)
    if number < 0 or refused or library.seccomp_load(rules):
        sys.exit(f"cannot refuse {call}")
    os.execvp(command[0], command)


main()
