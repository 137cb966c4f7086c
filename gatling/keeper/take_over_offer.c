/* take_over_offer.c - see take_over.h: the thread of the old process, which greets each process that connects to PATH,
 * sends the sockets to one that answers, and hears the keeper. */
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
#include <time.h>
#include <unistd.h>

#include "gatling/base/clock.h"
#include "gatling/base/notice.h"
#include "gatling/keeper/lookout.h"
#include "gatling/keeper/take_over_protocol.h"

/* --- its channels --- */

/* What is awaited of a process that has connected. */
enum awaited {
	AWAITS_ASKS,   /* that it asks for the sockets: it was started by the keeper */
	AWAITS_ANSWER, /* to the greeting */
	AWAITS_READY,  /* that it is ready; one process at a time */
	AWAITS_REASON  /* why it is not */
};

struct channel {
	int fd;
	enum awaited awaited;
	bool follows; /* it was started by the keeper */
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
	int keeper; /* the channel to it; -1: it has ended */
};

/* What has become of a channel. */
enum outcome { GOES_ON, ENDED, TAKEN_OVER };

static void drop(struct channels *c, unsigned i) {
	close(c->at[i].fd);
	c->count--;
	memmove(&c->at[i], &c->at[i + 1], (c->count - i) * sizeof c->at[0]);
}

/* --- one channel --- */

/* Wakes the main thread, which looks at the atomic members. */
static void wake_main(const struct take_over *t) { pthread_kill(t->main_thread, SIGUSR2); }

/* Notes that DIR cannot be served. */
static void set_missing(struct take_over *t, const char *why) {
	notice_line(LEVEL_WARNING, "%s cannot be served, so all requests are answered with 503 until it can: %s",
				t->directory, why);
	atomic_store(&t->missing, true);
	wake_main(t);
}

static enum outcome go_on(struct take_over *t, const struct channel *c, const char *why) {
	if (c->follows && !atomic_load(&t->lame)) set_missing(t, why);
	else notice_line(LEVEL_WARNING, "a new process cannot take over, so this one goes on: %s", why);
	return ENDED;
}

static enum outcome end_without_word(struct take_over *t, const struct channel *c) {
	return go_on(t, c, c->follows ? "the server for it has ended without a word" : "it has ended without a word");
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

static bool has_sockets(struct take_over *t) {
	pthread_mutex_lock(&t->mutex);
	const bool has = t->sockets->count;
	pthread_mutex_unlock(&t->mutex);
	return has;
}

/* Sends the sockets for datagrams, and all channels. Returns false if that has failed or takes too long. */
static bool send_datagrams(const struct datagram_sockets *d, int fd, int64_t until_ms) {
	bool sent = true;
	for (unsigned i = 0; sent && i < d->udp.count; i++)
		sent = send_socket(fd, d->udp.at[i].fd, KIND_DATAGRAMS) && clock_ms() < until_ms;
	for (unsigned i = 0; sent && i < d->channels; i++) {
		const struct datagram_note note = datagram_sockets_note(d, &d->channel[i]);
		sent = send_socket(fd, d->channel[i].outer, KIND_CHANNEL) && take_over_send(fd, &note, sizeof note) &&
			   clock_ms() < until_ms;
	}
	return sent;
}

/* Sends the offer and the sockets. Returns false if there are none, since this process is about to end, or if that has
 * failed or takes too long. */
static bool send_sockets(struct take_over *t, const struct channel *c) {
	const int64_t until_ms = clock_ms() + TAKE_OVER_ANSWER_S * INT64_C(1000);
	pthread_mutex_lock(&t->mutex);
	const unsigned count = t->sockets->count;
	const struct datagram_sockets *d = t->datagrams;
	struct take_over_offer offer = {.sockets = count + (t->listener != -1) + (t->sockets->status != 0) + d->udp.count +
											   d->channels};
	memcpy(offer.nonce, c->is.answer.nonce, sizeof offer.nonce);
	bool sent = count && take_over_send(c->fd, &offer, sizeof offer);
	if (sent && t->listener != -1) sent = send_socket(c->fd, t->listener, KIND_PATH);
	for (unsigned i = 0; sent && i < count; i++)
		sent = send_socket(c->fd, t->sockets->at[i].fd, t->sockets->at[i].secure ? KIND_SECURE : KIND_PLAIN) &&
			   clock_ms() < until_ms;
	if (sent && t->sockets->status) sent = send_socket(c->fd, t->sockets->status, KIND_STATUS);
	sent = sent && send_datagrams(d, c->fd, until_ms);
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
	if (send_sockets(all->take_over, c)) return wait_for(c, AWAITS_READY, TAKE_OVER_START_S);
	return has_sockets(all->take_over) ? end_without_word(all->take_over, c) : ENDED;
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

static enum outcome read_reply(struct channels *all, struct channel *c) {
	const ssize_t n = receive(c, 1);
	const char reply = n == 1 ? c->is.reason[0] : '\0';
	if (n == 0) return GOES_ON;
	if (reply == TAKE_OVER_ASKS && c->awaited == AWAITS_ASKS) return hand_over(all, c);
	if (reply == TAKE_OVER_READY && c->awaited == AWAITS_READY && take_over_send_byte(c->fd, TAKE_OVER_CONFIRMED)) {
		atomic_store(&all->take_over->followed, c->follows);
		return TAKEN_OVER;
	}
	if (reply == TAKE_OVER_FAILED) return wait_for(c, AWAITS_REASON, TAKE_OVER_GREETING_S);
	return end_without_word(all->take_over, c);
}

static enum outcome tell_reason(struct channels *all, struct channel *c) {
	c->is.reason[c->received] = '\0';
	return go_on(all->take_over, c, c->received ? c->is.reason : "it does not say why");
}

static enum outcome read_reason(struct channels *all, struct channel *c) {
	const ssize_t n = receive(c, sizeof c->is.reason - 1);
	return n == -1 || n == sizeof c->is.reason - 1 ? tell_reason(all, c) : GOES_ON;
}

static enum outcome readable(struct channels *all, struct channel *c) {
	switch (c->awaited) {
	case AWAITS_ANSWER: return read_answer(all, c);
	case AWAITS_ASKS:
	case AWAITS_READY: return read_reply(all, c);
	case AWAITS_REASON: return read_reason(all, c);
	default: return ENDED;
	}
}

static enum outcome expire(struct channels *all, struct channel *c) {
	char text[64];
	if (c->awaited == AWAITS_ANSWER) return refuse(all->take_over);
	if (c->awaited == AWAITS_REASON) return tell_reason(all, c);
	(void)take_over_send_byte(c->fd, TAKE_OVER_LATE);
	snprintf(text, sizeof text, "not ready after %d seconds", TAKE_OVER_START_S);
	return go_on(all->take_over, c, text);
}

/* --- all of them --- */

/* Waits until there may be descriptors or memory again. */
static void pause_briefly(void) {
	const struct timespec pause = {.tv_nsec = 100000000};
	nanosleep(&pause, NULL);
}

/* Makes room for a channel: the oldest that does not take over gives way, so that those that say nothing keep none out
 * that does. */
static void make_room(struct channels *all) {
	unsigned i = 0;
	if (all->count < TAKE_OVER_CHANNELS) return;
	while (all->at[i].awaited == AWAITS_READY || all->at[i].follows) i++; /* only two of them */
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

/* Adds a process that the keeper has started. */
static void introduce(struct channels *all, int fd) {
	struct channel c = {.fd = fd, .follows = true};
	take_over_limit_wait(fd, TAKE_OVER_ANSWER_S);
	(void)wait_for(&c, AWAITS_ASKS, TAKE_OVER_START_S);
	make_room(all);
	all->at[all->count++] = c;
}

/* Handles a message of the keeper, or its end. */
static void hear_keeper(struct channels *all) {
	struct take_over *t = all->take_over;
	struct keeper_message m;
	int fd;
	const int heard = keeper_receive(all->keeper, &m, &fd);
	if (heard == -1) {
		all->keeper = -1;
		atomic_store(&t->alone, true);
		wake_main(t);
	}
	if (heard != 1) return;
	if (fd != -1 && m.word == KEEPER_SUCCESSOR && !atomic_load(&t->happened)) introduce(all, fd);
	else if (fd != -1) close(fd);
	if (m.word == KEEPER_SIGNAL && m.signal > 0 && m.signal < 32) {
		atomic_fetch_or(&t->signals, 1U << m.signal);
		wake_main(t);
	}
	if (m.word == KEEPER_MISSING) set_missing(t, m.text);
	if (m.word == KEEPER_UNSEEN)
		notice_line(LEVEL_WARNING,
					"%s has not been looked up for %d seconds, since its disk does not answer: "
					"a new directory of that name is not seen",
					t->directory, LOOKOUT_LATE_S);
	if (m.word == KEEPER_SEEN) notice_line(LEVEL_NOTICE, "%s is looked up again", t->directory);
	if (m.word == KEEPER_FOUND && atomic_exchange(&t->missing, false)) {
		notice_line(LEVEL_NOTICE, "%s is served again", t->directory);
		wake_main(t);
	}
}

/* Waits for the next event. Returns whether a process has taken over. */
static bool wait_once(struct channels *all) {
	struct pollfd p[TAKE_OVER_CHANNELS + 2];
	int64_t now_ms = clock_ms(), until_ms = INT64_MAX;
	const unsigned count = all->count;
	p[count] = (struct pollfd){.fd = all->take_over->listener, .events = POLLIN};
	p[count + 1] = (struct pollfd){.fd = all->keeper, .events = POLLIN};
	for (unsigned i = 0; i < count; i++) {
		p[i] = (struct pollfd){.fd = all->at[i].fd, .events = POLLIN};
		if (all->at[i].until_ms < until_ms) until_ms = all->at[i].until_ms;
	}
	const int64_t wait_ms = until_ms > now_ms ? until_ms - now_ms : 0;
	if (poll(p, count + 2, count ? (int)wait_ms : -1) == -1) {
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
	if (p[count + 1].revents) hear_keeper(all);
	return false;
}

static void *wait_for_successors(void *argument) {
	struct take_over *t = argument;
	struct channels all = {.take_over = t, .keeper = t->link->channel};
	while (!wait_once(&all)) continue;
	while (all.count) drop(&all, all.count - 1);
	if (t->listener != -1) close(t->listener);
	t->listener = -1;
	if (!atomic_load(&t->followed)) keeper_tell(t->link, KEEPER_NO_OTHER);
	atomic_store(&t->happened, true);
	wake_main(t);
	while (all.keeper != -1) (void)wait_once(&all);
	return NULL;
}

int take_over_offer(struct take_over *t, struct sockets *sockets, const struct datagram_sockets *datagrams,
					const char *directory) {
	pthread_t thread;
	t->sockets = sockets;
	t->datagrams = datagrams;
	t->directory = directory;
	t->main_thread = pthread_self();
	pthread_mutex_init(&t->mutex, NULL);
	int flags, error = 0;
	if (t->path &&
		((flags = fcntl(t->listener, F_GETFL)) == -1 || fcntl(t->listener, F_SETFL, flags | O_NONBLOCK) == -1))
		error = errno;
	if (!error) error = pthread_create(&thread, NULL, wait_for_successors, t);
	if (error) return notice_cannot("start", "the thread that waits for successors", strerror(error));
	pthread_detach(thread);
	return 0;
}

bool take_over_happened(const struct take_over *t) { return atomic_load(&t->happened); }

void take_over_close(struct take_over *t, struct sockets *sockets) {
	if (t->sockets) pthread_mutex_lock(&t->mutex);
	sockets_close(sockets, NULL);
	if (t->sockets) pthread_mutex_unlock(&t->mutex);
}
