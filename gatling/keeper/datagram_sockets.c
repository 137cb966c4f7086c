/* datagram_sockets.c - see datagram_sockets.h. */
#include "gatling/keeper/datagram_sockets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h> /* getentropy(3): that of OpenSSL would leave something behind in the thread */
#include <unistd.h>

struct datagram_note datagram_sockets_note(const struct datagram_sockets *s, const struct datagram_channel *c) {
	struct datagram_note note = {.generation = c->generation, .worker = c->worker, .workers = c->workers};
	memcpy(note.secret, s->secret, sizeof note.secret);
	return note;
}

/* Makes room for more channels. Returns 0, or -1 with errno. */
static int grow(struct datagram_sockets *s, unsigned more) {
	struct datagram_channel *channel = realloc(s->channel, (s->channels + more) * sizeof *channel);
	if (!channel) return -1;
	s->channel = channel;
	return 0;
}

int datagram_sockets_inherit(struct datagram_sockets *s, int fd, const struct datagram_note *note) {
	errno = EINVAL;
	if (!note->workers || note->worker >= note->workers || grow(s, 1) == -1) {
		const int error = errno;
		close(fd);
		errno = error;
		return -1;
	}
	s->channel[s->channels++] = (struct datagram_channel){
		.inner = -1, .outer = fd, .generation = note->generation, .worker = note->worker, .workers = note->workers};
	s->before = s->channels;
	s->generation = (uint8_t)(note->generation + 1); /* the last process comes last */
	memcpy(s->secret, note->secret, sizeof s->secret);
	return 0;
}

/* Closes the channels of processes that were long before this one. */
static void drop_oldest(struct datagram_sockets *s) {
	unsigned kept = 0;
	for (unsigned i = 0; i < s->before; i++) {
		const struct datagram_channel *c = &s->channel[i];
		if ((uint8_t)(s->generation - c->generation) <= DATAGRAM_BEFORE) s->channel[kept++] = *c;
		else close(c->outer);
	}
	s->before = s->channels = kept;
}

static int set_up(int fd) {
	const int bytes = DATAGRAM_CHANNEL_BYTES;
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
	return fcntl(fd, F_SETFL, O_NONBLOCK) == -1 || fcntl(fd, F_SETFD, FD_CLOEXEC) == -1 ? -1 : 0;
}

int datagram_sockets_open(struct datagram_sockets *s, unsigned workers) {
	drop_oldest(s);
	if (!s->before && getentropy(s->secret, sizeof s->secret) == -1) return -1;
	if (grow(s, workers) == -1) return -1;
	for (unsigned i = 0; i < workers; i++) {
		int end[2];
		if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, end) == -1) return -1;
		s->channel[s->channels++] = (struct datagram_channel){.inner = end[0],
															  .outer = end[1],
															  .generation = s->generation,
															  .worker = (uint16_t)i,
															  .workers = (uint16_t)workers};
		if (set_up(end[0]) == -1 || set_up(end[1]) == -1) return -1;
	}
	return 0;
}

unsigned datagram_sockets_used(const struct datagram_sockets *s, unsigned worker, unsigned workers, int *to) {
	unsigned count = 0;
	for (unsigned i = 0; i < s->udp.count; i++)
		if (datagram_socket_is_used(&s->udp.at[i], worker, workers)) to[count++] = s->udp.at[i].fd;
	for (unsigned i = 0; i < s->channels; i++) {
		const struct datagram_channel *c = &s->channel[i];
		if (c->inner == -1 && c->worker % workers != worker) continue;
		to[count++] = c->outer;
		if (c->inner != -1 && c->worker == worker) to[count++] = c->inner;
	}
	return count;
}

void datagram_sockets_close(struct datagram_sockets *s) {
	sockets_close(&s->udp, NULL);
	for (unsigned i = 0; i < s->channels; i++) close(s->channel[i].outer);
	free(s->channel);
	s->channel = NULL;
	s->before = s->channels = 0;
}
