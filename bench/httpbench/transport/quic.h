/* quic.h - the QUIC connections of a client (RFC 9000), by ngtcp2, each over a UDP socket of its own: handshake,
 * streams, packets and timers. quic.c is the only user of ngtcp2; a build without HTTP/3 has none.c in its place. */
#ifndef BENCH_QUIC_H
#define BENCH_QUIC_H

#include <stdbool.h>
#include <stdint.h>

#include "bench/httpbench/transport/tls.h"
#include "io/alarm.h"

enum {
	QUIC_TEXT = 128,
	QUIC_SERVER_STREAMS = 8 /* in one direction, that the server may open on a connection: HTTP/3 has three */
};

/* Writes the libraries of HTTP/3 and their versions to text[QUIC_TEXT], or which ones a build with HTTP/3 needs.
 * Returns whether this build has them. */
bool quic_libraries(char *text);

/* Bytes to be sent on a stream. They must stay unchanged until the connection has ended. */
struct quic_piece {
	int64_t stream;
	const char *at;
	size_t length;
	bool ends;     /* they are the last ones */
	void *request; /* the owner's */
};

/* What a connection tells its owner, and asks of it. */
struct quic_owner {
	/* The handshake is complete. */
	void (*opened)(void *owner, const tls_stream *tls);
	/* The server allows so many streams of this client, ever. */
	void (*allowed)(void *owner, uint64_t streams);
	/* The next bytes of a stream, without a gap. request: what it was opened with, or NULL for one of the server's.
	 * Returns 0, or the error with which the connection ends. */
	uint64_t (*received)(void *owner, int64_t stream, void *request, const char *data, size_t length, bool ends);
	/* The server has reset its side of a stream. */
	void (*reset)(void *owner, int64_t stream, void *request, uint64_t error);
	/* Returns the next bytes to send, of a stream that is not blocked; false: there are none. */
	bool (*next)(void *owner, struct quic_piece *piece);
	/* n bytes of a piece were put into packets. */
	void (*sent)(void *owner, const struct quic_piece *piece, size_t n);
	/* The server allows no more bytes of a stream, or again. */
	void (*block)(void *owner, int64_t stream, void *request, bool blocked);
};

struct quic_settings {
	struct tls *tls;
	int64_t *now_ns;             /* the clock of the thread, which quic_receive() sets */
	int64_t timeout_ns;          /* of a handshake */
	uint64_t window, window_all; /* bytes that the server may send ahead, on a stream and on all of them */
	bool uploads;                /* much is sent: it is worth finding out how large packets may be */
};

/* What the connections of a thread share. Returns NULL without memory. NULL may be freed. */
struct quic_thread;
struct quic_thread *quic_thread_new(const struct quic_settings *settings, const struct quic_owner *calls);
void quic_thread_free(struct quic_thread *thread);

struct quic;

/* Makes a connection over a connected socket, which is in the loop. The alarm stands for it, and when it is due
 * quic_expire() must be called. Nothing is sent yet. Returns NULL without memory. */
struct quic *quic_new(struct quic_thread *thread, io_loop *loop, int fd, struct io_alarm *alarm, void *owner);

/* Frees the connection; if it has not ended, tells the server. Neither closes the socket. */
void quic_free(struct quic *q);

/* Receives datagrams, as many as one call takes. Returns the number of their bytes, or -1 with errno. EAGAIN: none have
 * come. With any other errno the connection has ended, and quic_why() says more: ECONNREFUSED; ECONNRESET; ETIMEDOUT;
 * ENODATA: the server has closed it without an error; EPROTO: of TLS; EBADMSG: the server broke the protocol; ENOMEM.
 */
ssize_t quic_receive(struct quic *q);

/* Handles that a time has come; what there is to be sent then waits for quic_send(). Returns 0, or -1 as
 * quic_receive(). */
int quic_expire(struct quic *q);

/* Sends what there is to be sent, and sets the alarm. Returns 0, or -1 as quic_receive(). EAGAIN: the socket takes no
 * more now. */
int quic_send(struct quic *q);

/* Returns the reason why the connection has ended, as a text. */
const char *quic_why(const struct quic *q);

/* Open a stream for a request, or one in this direction alone. Return its number, or -1 if the server allows no more
 * now. */
int64_t quic_open(struct quic *q, void *request);
int64_t quic_open_one_way(struct quic *q);

/* Gives up a stream in both directions, or only what is still to be sent on it. */
void quic_cancel(struct quic *q, int64_t stream, uint64_t error);
void quic_stop_sending(struct quic *q, int64_t stream, uint64_t error);

#endif
