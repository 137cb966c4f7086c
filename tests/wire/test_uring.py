"""IO=uring where the kernel does not allow io_uring, as in many containers."""

from gatling import Server
from served import SMALL


def test_epoll_takes_its_place_and_the_line_at_the_start_says_so(uring, files):
    server = Server(uring, files, "-j", "2", tracer=["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=io_uring_setup",
                                                      "-e", "inject=io_uring_setup:error=EPERM"])  # fmt: skip
    with server:
        assert "(epoll, since the kernel refuses io_uring: Operation not permitted, 2 workers)" in server.banner
        for _ in range(3):
            with server.connect() as connection:
                for _ in range(3):
                    assert connection.get("/small.bin").body == SMALL
