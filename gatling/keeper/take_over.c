/* take_over.c - see take_over.h: the new process, and a thread of the old one, which greets each process that connects
 * to PATH, and sends the sockets to one that answers. */
#include "gatling/keeper/take_over.h"

#include <errno.h>
#include <fcntl.h>
#include <io.h> /* of libowfat: io_passfd(3), io_receivefd(3) */
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h> /* getentropy(3): that of OpenSSL would leave something behind in the thread */
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/keeper/take_over_protocol.h"

#define NOT_GATLING "what answers there is not gatling"

/* --- the new process --- */

static int fail(const struct take_over *t, const char *reason) {
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

/* Receives a socket, and keeps it according to its kind. Returns 0, or -1 after printing an error. */
static int receive_socket(struct take_over *t, struct sockets *sockets) {
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
	if (name.version == TAKE_OVER_VERSION) return answer(t, &name, sockets, count);
	snprintf(text, sizeof text, "it speaks version %u of the protocol, this one %d: stop it, then start this one",
			 (unsigned)name.version, TAKE_OVER_VERSION);
	return fail(t, text);
}

int take_over_begin(struct take_over *t, const char *path, struct sockets *sockets) {
	uint32_t count = 0;
	t->path = path;
	t->owner = geteuid();
	if (!path) return 0;
	if (find_old(t) == -1) return -1;
	if (t->channel == -1) return 0;
	if (greet(t, sockets, &count) == -1) return -1;
	for (uint32_t i = 0; i < count; i++)
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

/* --- the old process: its channels --- */

/* What is awaited of a process that has connected. */
enum awaited {
	AWAITS_ANSWER, /* to the greeting */
	AWAITS_READY,  /* that it is ready; one process at a time */
	AWAITS_REASON  /* why it is not */
};

struct channel {
	int fd;
	enum awaited awaited;
	int64_t until_ms;
	struct take_over_greeting greeting;
	size_t received; /* bytes of what is awaited */
	union {
		struct take_over_answer answer;
		char reason[TAKE_OVER_TEXT_MAX];
	} is;
};

/* The channels, in the order of their connections. */
struct channels {
	struct take_over *take_over;
	struct channel at[TAKE_OVER_CHANNELS];
	unsigned count;
};

/* What has become of a channel. */
enum outcome { GOES_ON, ENDED, TAKEN_OVER };

static void drop(struct channels *c, unsigned i) {
	close(c->at[i].fd);
	c->count--;
	memmove(&c->at[i], &c->at[i + 1], (c->count - i) * sizeof c->at[0]);
}

/* --- the old process: one channel --- */

static enum outcome go_on(const char *why) {
	notice_line(LEVEL_WARNING, "a new process cannot take over, so this one goes on: %s", why);
	return ENDED;
}

/* Refuses a process that has not answered as a successor does. */
static enum outcome refuse(const struct take_over *t) {
	static notice_time next;
	if (notice_due(&next))
		notice_line(
			LEVEL_WARNING,
			"a process that has connected to %s gets no sockets, since it did not answer the greeting; an older "
			"gatling cannot take over from this one: stop this one, then start that one",
			t->path);
	return ENDED;
}

static bool send_socket(int fd, int socket, enum take_over_kind kind) {
	return io_passfd(fd, socket) == 0 && take_over_send_byte(fd, (char)kind);
}

/* Sends the offer and the sockets. Returns false if there are none, since this process is about to end, or if that has
 * failed or takes too long. */
static bool send_sockets(struct take_over *t, const struct channel *c) {
	const int64_t until_ms = clock_ms() + TAKE_OVER_ANSWER_S * INT64_C(1000);
	pthread_mutex_lock(&t->mutex);
	const unsigned count = t->sockets->count;
	struct take_over_offer offer = {.sockets = count + 1 + (t->sockets->status != 0)};
	memcpy(offer.nonce, c->is.answer.nonce, sizeof offer.nonce);
	bool sent = count && take_over_send(c->fd, &offer, sizeof offer) && send_socket(c->fd, t->listener, KIND_PATH);
	for (unsigned i = 0; sent && i < count; i++)
		sent = send_socket(c->fd, t->sockets->at[i].fd, t->sockets->at[i].secure ? KIND_SECURE : KIND_PLAIN) &&
			   clock_ms() < until_ms;
	if (sent && t->sockets->status) sent = send_socket(c->fd, t->sockets->status, KIND_STATUS);
	pthread_mutex_unlock(&t->mutex);
	return sent;
}

/* Waits for something for some seconds. */
static enum outcome wait_for(struct channel *c, enum awaited awaited, int seconds) {
	c->awaited = awaited;
	c->received = 0;
	c->until_ms = clock_ms() + seconds * INT64_C(1000);
	return GOES_ON;
}

/* Handles an answer that is complete. */
static enum outcome hand_over(struct channels *all, struct channel *c) {
	struct take_over_offer busy = {.sockets = 0};
	for (unsigned i = 0; i < all->count; i++) {
		if (all->at[i].awaited != AWAITS_READY) continue;
		memcpy(busy.nonce, c->is.answer.nonce, sizeof busy.nonce);
		(void)take_over_send(c->fd, &busy, sizeof busy);
		return ENDED;
	}
	return send_sockets(all->take_over, c) ? wait_for(c, AWAITS_READY, TAKE_OVER_START_S) : ENDED;
}

/* Receives what has come of length bytes. Returns how many have come in all, or -1 if there will be no more. */
static ssize_t receive(struct channel *c, size_t length) {
	ssize_t n = recv(c->fd, (char *)&c->is + c->received, length - c->received, MSG_DONTWAIT);
	if (n == 0 || (n == -1 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)) return -1;
	if (n > 0) c->received += (size_t)n;
	return (ssize_t)c->received;
}

/* Reads the answer to the greeting, which is refused at its first wrong byte. */
static enum outcome read_answer(struct channels *all, struct channel *c) {
	const struct take_over_answer *answer = &c->is.answer;
	const ssize_t n = receive(c, sizeof *answer);
	const size_t known = c->received < sizeof c->greeting ? c->received : sizeof c->greeting;
	if (n == -1 || memcmp(&answer->greeting, &c->greeting, known) != 0) return refuse(all->take_over);
	return (size_t)n == sizeof *answer ? hand_over(all, c) : GOES_ON;
}

static enum outcome read_reply(struct channel *c) {
	const ssize_t n = receive(c, 1);
	const char reply = n == 1 ? c->is.reason[0] : '\0';
	if (n == 0) return GOES_ON;
	if (reply == TAKE_OVER_READY && take_over_send_byte(c->fd, TAKE_OVER_CONFIRMED)) return TAKEN_OVER;
	if (reply == TAKE_OVER_FAILED) return wait_for(c, AWAITS_REASON, TAKE_OVER_GREETING_S);
	return go_on("it has ended without a word");
}

static enum outcome tell_reason(struct channel *c) {
	c->is.reason[c->received] = '\0';
	return go_on(c->received ? c->is.reason : "it does not say why");
}

static enum outcome read_reason(struct channel *c) {
	const ssize_t n = receive(c, sizeof c->is.reason - 1);
	return n == -1 || n == sizeof c->is.reason - 1 ? tell_reason(c) : GOES_ON;
}

static enum outcome readable(struct channels *all, struct channel *c) {
	switch (c->awaited) {
	case AWAITS_ANSWER: return read_answer(all, c);
	case AWAITS_READY: return read_reply(c);
	case AWAITS_REASON: return read_reason(c);
	default: return ENDED;
	}
}

static enum outcome expire(const struct channels *all, struct channel *c) {
	char text[64];
	if (c->awaited == AWAITS_ANSWER) return refuse(all->take_over);
	if (c->awaited == AWAITS_REASON) return tell_reason(c);
	(void)take_over_send_byte(c->fd, TAKE_OVER_LATE);
	snprintf(text, sizeof text, "not ready after %d seconds", TAKE_OVER_START_S);
	return go_on(text);
}

/* --- the old process: all of them --- */

/* Waits until there may be descriptors or memory again. */
static void pause_briefly(void) {
	const struct timespec pause = {.tv_nsec = 100000000};
	nanosleep(&pause, NULL);
}

static bool has_sockets(struct take_over *t) {
	pthread_mutex_lock(&t->mutex);
	const bool has = t->sockets->count;
	pthread_mutex_unlock(&t->mutex);
	return has;
}

/* Makes room for a channel: the oldest that does not take over gives way, so that those that say nothing keep none out
 * that does. */
static void make_room(struct channels *all) {
	unsigned i = 0;
	if (all->count < TAKE_OVER_CHANNELS) return;
	while (all->at[i].awaited == AWAITS_READY) i++; /* only one is in it */
	(void)refuse(all->take_over);
	drop(all, i);
}

/* Accepts a process, and greets it if it is trusted. */
static void accept_one(struct channels *all) {
	struct channel c = {.fd = accept(all->take_over->listener, NULL, NULL)};
	if (c.fd == -1) {
		if (errno != EAGAIN && errno != EWOULDBLOCK) pause_briefly();
		return;
	}
	c.greeting.name = (struct take_over_name){.name = TAKE_OVER_NAME, .version = TAKE_OVER_VERSION};
	take_over_limit_wait(c.fd, TAKE_OVER_GREETING_S);
	(void)fcntl(c.fd, F_SETFD, FD_CLOEXEC);
	if (!take_over_trusts(c.fd, all->take_over->owner) || !has_sockets(all->take_over) ||
		getentropy(c.greeting.nonce, sizeof c.greeting.nonce) == -1 ||
		!take_over_send(c.fd, &c.greeting, sizeof c.greeting)) {
		close(c.fd);
		return;
	}
	(void)wait_for(&c, AWAITS_ANSWER, TAKE_OVER_GREETING_S);
	make_room(all);
	all->at[all->count++] = c;
}

/* Waits for the next event. Returns whether a process has taken over. */
static bool wait_once(struct channels *all) {
	struct pollfd p[TAKE_OVER_CHANNELS + 1];
	int64_t now_ms = clock_ms(), until_ms = INT64_MAX;
	const unsigned count = all->count;
	p[count] = (struct pollfd){.fd = all->take_over->listener, .events = POLLIN};
	for (unsigned i = 0; i < count; i++) {
		p[i] = (struct pollfd){.fd = all->at[i].fd, .events = POLLIN};
		if (all->at[i].until_ms < until_ms) until_ms = all->at[i].until_ms;
	}
	const int64_t wait_ms = until_ms > now_ms ? until_ms - now_ms : 0;
	if (poll(p, count + 1, count ? (int)wait_ms : -1) == -1) {
		pause_briefly();
		return false;
	}
	now_ms = clock_ms();
	for (unsigned i = count; i-- > 0;) {
		struct channel *c = &all->at[i];
		enum outcome outcome = now_ms >= c->until_ms ? expire(all, c) : p[i].revents ? readable(all, c) : GOES_ON;
		if (outcome == TAKEN_OVER) return true;
		if (outcome == ENDED) drop(all, i);
	}
	if (p[count].revents) accept_one(all);
	return false;
}

static void *wait_for_successors(void *argument) {
	struct take_over *t = argument;
	struct channels all = {.take_over = t};
	while (!wait_once(&all)) continue;
	while (all.count) drop(&all, all.count - 1);
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
	const int flags = fcntl(t->listener, F_GETFL);
	int error = flags == -1 || fcntl(t->listener, F_SETFL, flags | O_NONBLOCK) == -1 ? errno : 0;
	if (!error) error = pthread_create(&thread, NULL, wait_for_successors, t);
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
