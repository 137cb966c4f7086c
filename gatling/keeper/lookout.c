/* lookout.c - see lookout.h. */
#include "gatling/keeper/lookout.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "gatling/sandbox/sandbox.h"
#include "io/io.h"

static struct sighting look_at(const char *path) {
	struct sighting s = {0};
	struct stat st;
	if (stat(path, &st) == -1) s.error = errno;
	else if (!S_ISDIR(st.st_mode)) s.error = ENOTDIR;
	if (s.error) return s;
	s.directory = (struct directory_id){.device = st.st_dev, .inode = st.st_ino};
	s.mode = st.st_mode;
	s.user = st.st_uid;
	s.group = st.st_gid;
	return s;
}

static bool same(const struct sighting *a, const struct sighting *b) {
	return a->error == b->error && a->directory.device == b->directory.device &&
		   a->directory.inode == b->directory.inode && a->mode == b->mode && a->user == b->user &&
		   a->group == b->group && a->order == b->order;
}

/* Waits until the next look. Returns whether the keeper is there. */
static bool wait_for_order(int channel, unsigned *orders) {
	char order;
	const ssize_t n = recv(channel, &order, 1, 0);
	if (n == 1) ++*orders;
	return n == 1 || (n == -1 && errno != ECONNRESET);
}

__attribute__((noreturn)) static void look_out(const char *path, int channel) {
	struct sighting last = {.error = -1};
	unsigned orders = 0, errors = 0, silent = 0;
	do {
		struct sighting s = look_at(path);
		errors = s.error ? errors + 1 : 0;
		s.order = orders;
		if (s.error && errors < LOOKOUT_ERRORS) continue;
		s.known = same(&s, &last);
		if (s.known && ++silent < LOOKOUT_ALIVE) continue;
		if (send(channel, &s, sizeof s, MSG_NOSIGNAL) != sizeof s) break;
		last = s;
		silent = 0;
	} while (wait_for_order(channel, &orders));
	_exit(0); /* the keeper has ended */
}

pid_t lookout_start(const char *path, bool sandbox, int *channel) {
	const struct timeval interval = {.tv_usec = LOOKOUT_MS * 1000};
	int end[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end) == -1) return -1;
	(void)setsockopt(end[1], SOL_SOCKET, SO_RCVTIMEO, &interval, sizeof interval);
	const pid_t process = fork();
	if (process == 0) {
		io_close_others(&end[1], 1);
		sandbox_enter_lookout(sandbox);
		look_out(path, end[1]);
	}
	close(end[1]);
	if (process == -1) close(end[0]);
	else (void)fcntl(end[0], F_SETFD, FD_CLOEXEC);
	*channel = end[0];
	return process;
}
