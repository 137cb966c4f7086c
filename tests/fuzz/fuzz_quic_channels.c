/* fuzz_quic_channels.c - whichever worker receives, whatever processes have taken over, and whatever octets come
 * through their channels: no descriptor stays open, they keep nothing of a connection that has ended, and serve the
 * next client. For libFuzzer: clang -fsanitize=fuzzer,address,undefined. */
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/fuzz/input.h"
#include "tests/quic/client.h"
#include "tests/quic/require.h"
#include "tests/quic/server.h"

enum { KNOWN = 3, LONG_MS = 20000, DESCRIPTORS = 256 };

static struct client *client[KNOWN];

/* --- messages --- */

/* What is to become of the next one: octets are changed from a place on, and it ends after `most` bytes. */
static struct slice xored;
static size_t xored_at, most;

/* A copy of the last one. */
static uint8_t seen[NETWORK_MESSAGE];
static size_t seen_length;

static void change_octets(uint8_t *message, size_t length) {
	for (size_t i = 0; i < xored.length && xored_at + i < length; i++) message[xored_at + i] ^= (uint8_t)xored.at[i];
	xored.length = 0;
}

static void change(uint8_t *message, size_t *length) {
	memcpy(seen, message, *length);
	seen_length = *length;
	change_octets(message, *length);
	if (most < *length) *length = most;
	most = SIZE_MAX;
}

static void send_message(int fd, const void *octets, size_t length, bool with_descriptor) {
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))}};
	struct iovec all = {.iov_base = (void *)(uintptr_t)octets, .iov_len = length};
	struct msghdr m = {.msg_iov = &all, .msg_iovlen = 1};
	if (with_descriptor) {
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
	}
	(void)syscall(SYS_sendmsg, fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Returns an end of a channel: one that other workers and the successor have, or a worker's own, through which it sends
 * to the successor. -1: there is no such worker. */
static int end_of(unsigned process, unsigned worker, bool own) {
	const struct quic *e = process < SERVER_PROCESSES ? server_worker(process, worker) : NULL;
	const struct datagram_channel *c = e ? datagram_channel_of(e->shared, worker) : NULL;
	return !c ? -1 : own ? c->inner : c->outer;
}

/* Sends octets of the input, or the last message once more, with some that are others. */
static void message(uint8_t what) {
	const uint8_t how = octet();
	const int fd = end_of(how & 3, how >> 2 & 3, what & 8);
	if (what & 16) {
		const struct slice s = octets((size_t)octet() * 2);
		if (fd != -1) send_message(fd, s.at, s.length, what & 32);
		return;
	}
	change_octets(seen, seen_length);
	if (fd != -1) send_message(fd, seen, seen_length, what & 32);
}

/* --- steps --- */

static void ask(struct client *c, const char *path) {
	if (c && !c->ended && c->streams < CLIENT_STREAMS) client_get(c, path);
}

static void renew(unsigned number) {
	if (client[number]) client_free(client[number]);
	client[number] = client_new(number);
}

static void step(void) {
	const uint8_t what = octet();
	const unsigned which = (unsigned)(what >> 4) % KNOWN;
	switch (what & 7) {
	case 0: pass(what >> 3); break;
	case 1: pass((what >> 3) * 100); break;
	case 2: server_choose(what >> 3); break;
	case 3: message(what); break;
	case 4:
		xored_at = what >> 3;
		xored = octets(octet() & 15);
		if (what & 0x80) most = octet();
		break;
	case 5: ask(client[which], what & 8 ? SERVER_LARGE : SERVER_SMALL); break;
	case 6:
		if (what & 8 && client[which]) client[which]->address = network_client(KNOWN + which);
		else renew(which);
		break;
	default:
		if (what & 8 && server_last()) server_end((unsigned)(what >> 4) % server_last());
		else if (server_last() + 1 < SERVER_PROCESSES) server_succeed(1 + (unsigned)(what >> 4) % SERVER_WORKERS);
	}
}

/* --- the end --- */

static struct client_stream *stream;

static bool has_got(void) { return client_has_got(stream, server_content, SERVER_SMALL_LENGTH); }

static void serve_another(void) {
	struct client *other = client_new(2 * KNOWN);
	stream = client_get(other, SERVER_SMALL);
	require(pass_until(has_got, LONG_MS));
	client_free(other);
}

static unsigned open_sockets(void) {
	unsigned count = 0;
	struct stat s;
	for (int fd = 0; fd < DESCRIPTORS; fd++) count += fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode);
	return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
	static bool is_set_up;
	if (!is_set_up) server_set_up();
	is_set_up = true;
	const unsigned sockets = open_sockets();
	input_set(data, length);
	xored.length = seen_length = 0;
	most = SIZE_MAX;
	server_open(1 + octet() % SERVER_WORKERS);
	network_set_change(change);
	client[0] = client_new(0);
	while (input_left()) step();
	pass(10 * NETWORK_DELAY_MS);
	for (unsigned i = 0; i < KNOWN; i++) {
		if (client[i]) client_free(client[i]);
		client[i] = NULL;
	}
	network_set_change(NULL);
	serve_another();
	server_close();
	require(open_sockets() == sockets);
	return 0;
}
