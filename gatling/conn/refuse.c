/* refuse.c - see refuse.h. */
#include "gatling/conn/refuse.h"

#include <sys/uio.h>
#include <unistd.h>

#include "gatling/site/response.h"

void refuse_politely(struct conn_context *w, int fd, bool secure, int status) {
	struct slice line = response_status_line(status), common = w->common_fields[0];
	struct slice rest = SLICE("Retry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
	const struct iovec answer[] = {{.iov_base = (char *)(uintptr_t)line.at, .iov_len = line.length},
								   {.iov_base = (char *)(uintptr_t)common.at, .iov_len = common.length},
								   {.iov_base = (char *)(uintptr_t)rest.at, .iov_len = rest.length}};
	if (secure) return;
	(void)!recv(fd, w->scratch, CONN_SCRATCH, MSG_DONTWAIT);
	(void)!writev(fd, answer, sizeof answer / sizeof *answer); /* the socket is new: there is room */
}

void refuse_connection(struct conn_context *w, int fd, bool secure, int status) {
	refuse_politely(w, fd, secure, status);
	close(fd);
}
