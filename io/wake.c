/* wake.c - the pipe that ends a wait from another thread. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "io/internal.h"

int io_wake_open(io_loop *loop) {
	int end[2];
	if (pipe(end) == -1) return -1;
	loop->wake_read = end[0];
	loop->wake_write = end[1];
	for (int i = 0; i < 2; i++)
		if (fcntl(end[i], F_SETFL, O_NONBLOCK) == -1 || fcntl(end[i], F_SETFD, FD_CLOEXEC) == -1) return -1;
	return 0;
}

void io_wake_close(io_loop *loop) {
	if (loop->wake_read != -1) close(loop->wake_read);
	if (loop->wake_write != -1) close(loop->wake_write);
}

void io_wake_drain(io_loop *loop) {
	char buffer[8];
	while (read(loop->wake_read, buffer, sizeof buffer) > 0) {}
	/* This comes last: a byte that is written from here on stays in the pipe. An earlier wake has done its work, since
	 * the loop is awake. The exchange makes visible what the other thread did before io_wake(). */
	(void)atomic_exchange(&loop->woken, WOKEN_NOT);
}

void io_wake(io_loop *loop) {
	int error = errno;
	if (atomic_exchange(&loop->woken, WOKEN_SENT) == WOKEN_SENT || write(loop->wake_write, "", 1) == 1) return;
	atomic_store(&loop->woken, WOKEN_LOST); /* the next turn notices it, and the next wake tries again */
	errno = error;
}
