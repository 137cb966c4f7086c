/* client.h - clients of HTTP/3 in this process, with the QUIC of ngtcp2, and the time that passes for them and the
 * server. What they send on streams are octets of a test. */
#ifndef TESTS_QUIC_CLIENT_H
#define TESTS_QUIC_CLIENT_H

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>

#include "gatling/base/slice.h"
#include "tests/quic/network.h"

enum { CLIENT_STREAMS = 32, CLIENT_STREAM_SENT = 512, CLIENTS = 256 };

/* A stream that the client has opened. */
struct client_stream {
	int64_t id; /* -1: not yet, as the server has not allowed it */
	char out[CLIENT_STREAM_SENT];
	size_t length, sent;
	bool uni, ends, end_sent;
	char *in; /* what has come */
	size_t received, room;
	bool ended, reset;
};

struct client {
	union io_address address; /* from which it sends */
	unsigned number;          /* of its address at first */
	ngtcp2_conn *conn;
	ngtcp2_crypto_ossl_ctx *tls;
	SSL *ssl;
	ngtcp2_crypto_conn_ref ref;
	struct client_stream stream[CLIENT_STREAMS];
	unsigned streams;
	bool open;                   /* the handshake is complete */
	bool ended;                  /* it sends and takes nothing more, because of */
	int why;                     /* an error of ngtcp2, */
	uint64_t error;              /* or what the server has said: UINT64_MAX: nothing */
	bool was_reset, was_retried; /* by a stateless reset; a Retry has come */
	unsigned marks;              /* datagrams that came with CE */
	bool silent;                 /* it answers nothing from now on */
	struct slice frames;         /* that stand in the next packet instead of its own; none: it has its own */
	/* Changes a datagram before it is sent. NULL: nothing does. */
	void (*garble)(uint8_t *datagram, size_t length);
};

/* Returns a client, which opens its control stream; the first datagram is sent when time passes. */
struct client *client_new(unsigned number);
void client_free(struct client *c);

/* Sends octets on a new stream. Returns it. */
struct client_stream *client_send(struct client *c, bool uni, struct slice octets, bool ends);

/* Sends a packet with these frames alone, as many as fit, and padding. It takes one of CLIENT_STREAMS. The octets must
 * be there until time passes. */
void client_send_frames(struct client *c, struct slice frames);

/* Asks for a file. Returns the stream. */
struct client_stream *client_get(struct client *c, const char *path);

/* Returns whether the answer on a stream is complete, has the status 200 and that content. */
bool client_has_got(const struct client_stream *s, const char *content, size_t length);

/* Ends the connection with an error of HTTP/3, and says so. */
void client_close(struct client *c, uint64_t error);

/* Lets time pass for the server and all clients until done(), if it is not NULL, returns true. Returns false if that
 * takes longer. */
bool pass_until(bool (*done)(void), int limit_ms);
static inline void pass(int ms) { (void)pass_until(NULL, ms); }

#endif
