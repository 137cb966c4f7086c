/* take_over.c - see take_over.h. Messages: the old process sends GREETING and the number of sockets, and with each
 * socket a byte for its kind (enum socket_kind). The new one sends READY, or FAILED and a text. The old one answers
 * CONFIRMED or LATE. End of file means that the other process has ended. All later versions have to understand this
 * protocol. */
#include "gatling/take_over.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h> /* of libowfat: io_passfd(3) */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/base/platform.h"

enum socket_kind { KIND_PLAIN = 'h', KIND_SECURE = 's', KIND_PATH = 'p', KIND_STATUS = 't' };
enum reply { READY = 'r', FAILED = 'f', CONFIRMED = 'k', LATE = 'l' };

struct greeting {
	char name[12];
	uint32_t sockets;
};
#define GREETING "gatling 1\n"

/* --- both --- */

static int fail(const struct take_over *t, const char *reason) {
	return notice_cannot("take over at", t->path, reason);
}

static void limit_wait(int fd, int seconds) {
	const struct timeval limit = {.tv_sec = seconds};
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

static bool send_all(int fd, const void *data, size_t length) {
	return send(fd, data, length, MSG_NOSIGNAL) == (ssize_t)length;
}

/* Receives a whole message. Returns false with errno; errno is 0 if the other process has ended. */
static bool receive_all(int fd, void *data, size_t length) {
	ssize_t n;
	do {
		errno = 0;
		n = recv(fd, data, length, MSG_WAITALL);
	} while (n == -1 && errno == EINTR); /* this process was stopped and continued */
	return n == (ssize_t)length;
}

/* Returns whether, according to errno, the other process is there but did not send anything in time. */
static bool timed_out(void) { return errno == EAGAIN || errno == EWOULDBLOCK; }

static bool send_byte(int fd, char byte) { return send_all(fd, &byte, 1); }

/* Returns whether the other process belongs to root, or to the user who started this one. */
static bool is_trusted(const struct take_over *t, int channel) {
	uid_t user;
	return platform_peer_user(channel, &user) == 0 && (user == 0 || user == t->owner);
}

/* --- the new process --- */

static void close_channel(struct take_over *t) {
	if (t->channel != -1) close(t->channel);
	t->channel = -1;
}

/* Fills in the address of PATH. Returns 0, or -1 after printing an error. */
static int address_of(const struct take_over *t, struct sockaddr_un *address) {
	*address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (strlen(t->path) >= sizeof address->sun_path) return fail(t, "the path is too long");
	memcpy(address->sun_path, t->path, strlen(t->path));
	return 0;
}

/* Connects to the process that serves PATH. Returns 0, also if there is none, or -1 after printing an error. */
static int find_old(struct take_over *t) {
	struct sockaddr_un address;
	if (address_of(t, &address) == -1) return -1;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	if (fd == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1) return fail(t, strerror(errno));
	limit_wait(fd, TAKE_OVER_ANSWER_S);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == -1) {
		int error = errno;
		close(fd);
		return error == ENOENT || error == ECONNREFUSED ? 0 : fail(t, strerror(error));
	}
	t->channel = fd;
	/* the socket may be in a directory where anybody can create one */
	if (is_trusted(t, fd)) return 0;
	close_channel(t);
	return fail(t, "the process there belongs to another user");
}

/* Receives a socket, and keeps it according to its kind. Returns 0, or -1 after printing an error. */
static int receive_socket(struct take_over *t, struct sockets *sockets) {
	char kind;
	int fd = (int)io_receivefd(t->channel);
	if (fd < 0) return fail(t, "a socket was not received");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 || !receive_all(t->channel, &kind, 1)) {
		close(fd);
		return fail(t, "a socket was not received");
	}
	if (kind == KIND_PATH) t->listener = fd;
	else if (kind == KIND_STATUS) sockets->status = fd;
	else if (sockets_add(sockets, fd, kind == KIND_SECURE, 0) == -1) return fail(t, strerror(errno));
	return 0;
}

int take_over_begin(struct take_over *t, const char *path, struct sockets *sockets) {
	struct greeting greeting;
	t->path = path;
	t->owner = geteuid();
	if (!path) return 0;
	if (find_old(t) == -1) return -1;
	if (t->channel == -1) return 0;
	if (!receive_all(t->channel, &greeting, sizeof greeting)) {
		bool silent = timed_out();
		close_channel(t);
		if (silent) return fail(t, "the process there does not answer; perhaps another one is just taking over");
		sockets->patience = TAKE_OVER_PATIENCE; /* the old process is about to end */
		return 0;
	}
	if (memcmp(greeting.name, GREETING, sizeof GREETING) != 0) return fail(t, "what answers there is not gatling");
	for (uint32_t i = 0; i < greeting.sockets; i++)
		if (receive_socket(t, sockets) == -1) return -1;
	return 0;
}

bool take_over_has_old(const struct take_over *t) { return t->channel != -1; }

int take_over_bind(struct take_over *t) {
	struct sockaddr_un address;
	struct stat st;
	if (!t->path || t->listener != -1) return 0;
	if (address_of(t, &address) == -1) return -1;
	const bool exists = lstat(t->path, &st) == 0;
	if (exists && !S_ISSOCK(st.st_mode))
		return notice_cannot("use --take-over", t->path, "it exists, and is not a socket");
	if (exists) unlink(t->path); /* no process listens there */
	t->listener = socket(AF_UNIX, SOCK_STREAM, 0);
	if (t->listener == -1 || fcntl(t->listener, F_SETFD, FD_CLOEXEC) == -1 ||
		bind(t->listener, (const struct sockaddr *)&address, sizeof address) == -1 || chmod(t->path, 0600) == -1 ||
		listen(t->listener, SOMAXCONN) == -1)
		return notice_cannot("listen on", t->path, strerror(errno));
	return 0;
}

int take_over_finish(struct take_over *t) {
	char reply = 0;
	if (t->channel == -1) return 0;
	(void)send_byte(t->channel, READY); /* if the old process has given up, it has sent LATE */
	bool answered = receive_all(t->channel, &reply, 1), silent = !answered && timed_out();
	close_channel(t);
	if (silent) return fail(t, "the process there does not answer any more");
	return !answered || reply == CONFIRMED ? 0 : fail(t, "the process there has given up waiting for this one");
}

void take_over_give_up(struct take_over *t) {
	char why[TAKE_OVER_TEXT_MAX];
	if (t->channel == -1) return;
	notice_last(why, sizeof why);
	if (send_byte(t->channel, FAILED)) (void)send_all(t->channel, why, strlen(why));
	close_channel(t);
}

/* --- the old process --- */

static bool send_socket(int channel, int fd, enum socket_kind kind) {
	return io_passfd(channel, fd) == 0 && send_byte(channel, (char)kind);
}

/* Sends the greeting and the sockets. Returns how many listening sockets there are; 0: this process is about to end. */
static unsigned send_sockets(struct take_over *t, int channel) {
	pthread_mutex_lock(&t->mutex);
	const unsigned count = t->sockets->count;
	const struct greeting greeting = {.name = GREETING, .sockets = count + 1 + (t->sockets->status != 0)};
	bool sent = count && send_all(channel, &greeting, sizeof greeting) && send_socket(channel, t->listener, KIND_PATH);
	for (unsigned i = 0; sent && i < count; i++)
		sent = send_socket(channel, t->sockets->at[i].fd, t->sockets->at[i].secure ? KIND_SECURE : KIND_PLAIN);
	if (sent && t->sockets->status) (void)send_socket(channel, t->sockets->status, KIND_STATUS);
	pthread_mutex_unlock(&t->mutex);
	return count;
}

/* Sends the sockets, and waits for the new process. Returns whether it has taken over. */
static bool hand_over(struct take_over *t, int channel) {
	char reply = 0, text[TAKE_OVER_TEXT_MAX] = "";
	if (!send_sockets(t, channel)) return false;
	limit_wait(channel, TAKE_OVER_START_S);
	if (receive_all(channel, &reply, 1) && reply == READY) return send_byte(channel, CONFIRMED);
	if (reply == FAILED) {
		ssize_t n = recv(channel, text, sizeof text - 1, MSG_WAITALL);
		text[n > 0 ? n : 0] = '\0';
	} else if (timed_out()) {
		(void)send_byte(channel, LATE);
		snprintf(text, sizeof text, "not ready after %d seconds", TAKE_OVER_START_S);
	}
	notice_line(LEVEL_WARNING, "a new process cannot take over, so this one goes on: %s",
				*text ? text : "it has ended without a word");
	return false;
}

static void *wait_for_successors(void *argument) {
	struct take_over *t = argument;
	bool happened = false;
	while (!happened) {
		int channel = accept(t->listener, NULL, NULL);
		if (channel == -1) {
			const struct timespec pause = {.tv_nsec = 100000000}; /* there are no free descriptors */
			nanosleep(&pause, NULL);
			continue;
		}
		limit_wait(channel, TAKE_OVER_ANSWER_S);
		happened = is_trusted(t, channel) && hand_over(t, channel);
		close(channel);
	}
	close(t->listener);
	atomic_store(&t->happened, true);
	pthread_kill(t->main_thread, SIGUSR2);
	return NULL;
}

int take_over_offer(struct take_over *t, struct sockets *sockets) {
	pthread_t thread;
	if (!t->path) return 0;
	t->sockets = sockets;
	t->main_thread = pthread_self();
	pthread_mutex_init(&t->mutex, NULL);
	int error = pthread_create(&thread, NULL, wait_for_successors, t);
	if (error) return notice_cannot("start", "the thread of --take-over", strerror(error));
	pthread_detach(thread);
	return 0;
}

bool take_over_happened(const struct take_over *t) { return atomic_load(&t->happened); }

void take_over_close(struct take_over *t, struct sockets *sockets) {
	if (t->sockets) pthread_mutex_lock(&t->mutex);
	sockets_close(sockets, NULL);
	if (t->sockets) pthread_mutex_unlock(&t->mutex);
}
