"""Starts the processes of a measurement, and ends all of them when it ends, however it ends.

Each process leads a process group, so that its children end with it. SIGHUP, SIGINT and SIGTERM
kill these groups, and then end the program through its "with" blocks. If the program itself is
killed, the kernel sends SIGTERM to its children.
"""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import traceback

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
STOP_S = 3
PR_SET_PDEATHSIG = 1  # prctl(2)

_running = set()
_interrupted = False
_libc = ctypes.CDLL(None)


def _interrupt(number, _frame):
    global _interrupted
    _interrupted = True
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    for process in list(_running):
        process.kill_group()
    sys.exit(128 + number)


def end_on_signals():
    """Makes signals end the program; called when it starts. A signal that is ignored, as SIGHUP
    under nohup(1), remains ignored."""
    for number in SIGNALS:
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _interrupt)


@contextlib.contextmanager
def _signals_blocked():
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield before
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_parent(number):
    if sys.platform == "linux":
        _libc.prctl(PR_SET_PDEATHSIG, number)


class Process(subprocess.Popen):
    """A process that leads a process group. cores: those it may run on (default: all). A "with"
    block stops it at its end, and kills it if the block fails."""

    def __init__(self, command, cores=None, **options):
        with _signals_blocked() as mask:
            if _interrupted:
                sys.exit(1)

            def prepare():
                _end_with_parent(signal.SIGTERM)
                if cores:
                    os.sched_setaffinity(0, cores)
                signal.pthread_sigmask(signal.SIG_SETMASK, mask)

            super().__init__([str(word) for word in command], preexec_fn=prepare, start_new_session=True, **options)
            _running.add(self)

    def __exit__(self, kind, *exception):
        if kind:
            self.kill_group()
        self.stop()
        super().__exit__(kind, *exception)

    def kill_group(self):
        """Kills the group. Does not wait for its leader, so that its ID is not reused."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)

    def stop(self, whole_group=False, limit_s=STOP_S):
        """Sends SIGTERM to the leader, or to the whole group, and kills the group if it takes
        longer than limit_s to end."""
        if self.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if whole_group else os.kill)(self.pid, signal.SIGTERM)
            try:
                self.wait(limit_s)
            except subprocess.TimeoutExpired:
                self.kill_group()
                self.wait()
        _running.discard(self)


def run(command, timeout=None, **options):
    """Does what subprocess.run() does, in a process group."""
    with Process(command, **options) as process:
        out, err = process.communicate(timeout=timeout)
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def _be_child(mask, work, arguments):
    """Runs work in the child. Never returns, since the parent's clean-up is not the child's."""
    try:
        _end_with_parent(signal.SIGKILL)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        work(*arguments)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(1)


@contextlib.contextmanager
def forked(work, *arguments):
    """Runs work() in a child beside the block, and kills the child at its end."""
    sys.stdout.flush()
    with _signals_blocked() as mask:
        child = os.fork()
        if child == 0:
            _be_child(mask, work, arguments)
    try:
        yield child
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
