/* take_over.c - see take_over.h: the new process. */
#include "gatling/keeper/take_over.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h> /* of libowfat: io_passfd(3), io_receivefd(3) */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h> /* getentropy(3): that of OpenSSL would leave something behind in the thread */
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/keeper/take_over_protocol.h"

#define NOT_GATLING "what answers there is not gatling"

static int fail(const struct take_over *t, const char *reason) {
	if (t->follows) return notice_cannot("take over from the server before", NULL, reason);
	return notice_cannot("take over at", t->path, reason);
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
	take_over_limit_wait(fd, TAKE_OVER_ANSWER_S);
	if (connect(fd, (const struct sockaddr *)&address, sizeof address) == -1) {
		int error = errno;
		close(fd);
		return error == ENOENT || error == ECONNREFUSED ? 0 : fail(t, strerror(error));
	}
	t->channel = fd;
	/* the socket may be in a directory where anybody can create one */
	if (take_over_trusts(fd, t->owner)) return 0;
	close_channel(t);
	return fail(t, "the process there belongs to another user");
}

/* Receives what is said of a channel, and keeps it. Returns 0, or -1 after printing an error. */
static int receive_channel(struct take_over *t, int fd, struct datagram_sockets *datagrams) {
	struct datagram_note note;
	if (!receive_all(t->channel, &note, sizeof note)) {
		close(fd);
		return fail(t, "a socket was not received");
	}
	return datagram_sockets_inherit(datagrams, fd, &note) == -1 ? fail(t, strerror(errno)) : 0;
}

/* Receives a socket, and keeps it according to its kind. Returns 0, or -1 after printing an error. */
static int receive_socket(struct take_over *t, struct sockets *sockets, struct datagram_sockets *datagrams) {
	char kind;
	int fd = (int)io_receivefd(t->channel);
	if (fd < 0) return fail(t, "a socket was not received");
	if (fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 || !receive_all(t->channel, &kind, 1)) {
		close(fd);
		return fail(t, "a socket was not received");
	}
	switch (kind) {
	case KIND_PATH: t->listener = fd; return 0;
	case KIND_STATUS: sockets->status = fd; return 0;
	case KIND_PLAIN:
	case KIND_SECURE: return sockets_add(sockets, fd, kind == KIND_SECURE, 0) == -1 ? fail(t, strerror(errno)) : 0;
	case KIND_DATAGRAMS: return sockets_add(&datagrams->udp, fd, true, 0) == -1 ? fail(t, strerror(errno)) : 0;
	case KIND_CHANNEL: return receive_channel(t, fd, datagrams);
	default: close(fd); return fail(t, "a socket of an unknown kind was received");
	}
}

/* Gives up the channel because the process there did not say what was expected. Returns 0 if it is about to end, or -1
 * after printing an error. */
static int end_of_words(struct take_over *t, struct sockets *sockets) {
	const bool silent = timed_out();
	close_channel(t);
	if (silent) return fail(t, "the process there does not answer; perhaps another one is just taking over");
	sockets->patience = TAKE_OVER_PATIENCE;
	return 0;
}

/* Answers a greeting, whose name has been received, and waits for the offer. Sets *count to the number of sockets, 0 if
 * the process there is about to end. Returns 0, or -1 after printing an error. */
static int answer(struct take_over *t, const struct take_over_name *name, struct sockets *sockets, uint32_t *count) {
	struct take_over_answer a = {.greeting.name = *name};
	struct take_over_offer offer;
	if (getentropy(a.nonce, sizeof a.nonce) == -1) return fail(t, strerror(errno));
	if (!receive_all(t->channel, a.greeting.nonce, sizeof a.greeting.nonce) ||
		!take_over_send(t->channel, &a, sizeof a) || !receive_all(t->channel, &offer, sizeof offer))
		return end_of_words(t, sockets);
	if (memcmp(offer.nonce, a.nonce, sizeof a.nonce) != 0) return fail(t, NOT_GATLING);
	if (!offer.sockets) return fail(t, "another process is just taking over there");
	*count = offer.sockets;
	return 0;
}

/* Receives a greeting and what follows it before the sockets, as answer() does. */
static int greet(struct take_over *t, struct sockets *sockets, uint32_t *count) {
	struct take_over_name name;
	char text[128];
	if (!receive_all(t->channel, &name, sizeof name)) return end_of_words(t, sockets);
	if (memcmp(name.name, TAKE_OVER_NAME_1, sizeof TAKE_OVER_NAME_1) == 0) {
		*count = name.version;
		return 0;
	}
	if (memcmp(name.name, TAKE_OVER_NAME, sizeof TAKE_OVER_NAME) != 0) return fail(t, NOT_GATLING);
	if (name.version >= TAKE_OVER_VERSION_LEAST && name.version <= TAKE_OVER_VERSION)
		return answer(t, &name, sockets, count);
	snprintf(text, sizeof text, "it speaks version %u of the protocol, this one %d: stop it, then start this one",
			 (unsigned)name.version, TAKE_OVER_VERSION);
	return fail(t, text);
}

void take_over_open(struct take_over *t, const struct keeper_link *link) {
	t->link = link;
	t->channel = link->predecessor;
	t->follows = t->channel != -1;
	if (t->follows) take_over_limit_wait(t->channel, TAKE_OVER_ANSWER_S);
}

/* Asks the predecessor, and sets *count to the number of sockets. Returns 0, or -1 after printing an error. */
static int ask(struct take_over *t, uint32_t *count) {
	struct take_over_offer offer;
	if (!take_over_send_byte(t->channel, TAKE_OVER_ASKS) || !receive_all(t->channel, &offer, sizeof offer))
		return fail(t, "it is about to end");
	if (!offer.sockets) return fail(t, "another process is just taking over from it");
	*count = offer.sockets;
	return 0;
}

int take_over_begin(struct take_over *t, const char *path, struct sockets *sockets,
					struct datagram_sockets *datagrams) {
	uint32_t count = 0;
	t->path = path;
	t->owner = geteuid();
	if (!t->follows && !path) return 0;
	if (!t->follows && find_old(t) == -1) return -1;
	if (t->channel == -1) return 0;
	if ((t->follows ? ask(t, &count) : greet(t, sockets, &count)) == -1) return -1;
	for (uint32_t i = 0; i < count; i++)
		if (receive_socket(t, sockets, datagrams) == -1) return -1;
	return 0;
}

bool take_over_has_old(const struct take_over *t) { return t->channel != -1; }

bool take_over_follows(const struct take_over *t) { return t->follows; }

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
	/* if the old process has given up, it has sent TAKE_OVER_LATE */
	(void)take_over_send_byte(t->channel, TAKE_OVER_READY);
	bool answered = receive_all(t->channel, &reply, 1), silent = !answered && timed_out();
	close_channel(t);
	if (silent) return fail(t, "the process there does not answer any more");
	if (!answered || reply == TAKE_OVER_CONFIRMED) return 0;
	return fail(t, "the process there has given up waiting for this one");
}

void take_over_give_up(struct take_over *t) {
	char why[TAKE_OVER_TEXT_MAX];
	if (t->channel == -1) return;
	notice_last(why, sizeof why);
	if (take_over_send_byte(t->channel, TAKE_OVER_FAILED)) (void)take_over_send(t->channel, why, strlen(why));
	close_channel(t);
}
