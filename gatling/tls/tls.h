/* tls.h - TLS as a filter between a connection and io/. OpenSSL makes handshakes and records; the bytes go through io/,
 * so that each event mechanism carries them. Where the kernel seals records (kTLS), the batch goes to the socket as it
 * is, and files by sendfile; else what is read of a file goes into the plaintext of records of up to 16 KB, and several
 * records into one send.
 *
 * An idle connection owns nothing but its SSL: what is read and sealed lies in buffers of the worker, and only what a
 * socket does not take is kept for it. */
#ifndef GATLING_TLS_TLS_H
#define GATLING_TLS_TLS_H

#include "gatling/tls/certificates.h"
#include "io/iob.h"

enum {
	TLS_RECORD_MAX = 16 * 1024, /* bytes of plaintext (RFC 8446, section 5.1) */
	/* Bytes in each of the first records: one fits a segment of a path with an MTU of 1500, over IPv6 with timestamps,
	 * so that the client can read what has come before all of a large record has; */
	TLS_FIRST_RECORD = 1392,
	TLS_FIRST_BYTES = 14 * 1024, /* until so many are sent: about what goes out before the first acknowledgement */
	TLS_BATCH = 64 * 1024,       /* bytes sealed at a time */
	TLS_READ = 16 * 1024,        /* bytes read at a time */
	TLS_UNSENT_MAX = 128 * 1024, /* bytes sealed and not sent; more: the connection ends */
	TLS_ROOM = TLS_READ + TLS_RECORD_MAX + 1024, /* what tls_read() takes at least */
	/* Handshakes taken on in one turn of the loop, each up to a millisecond of arithmetic. */
	TLS_HANDSHAKES = 8
};

/* What the connections of one worker share. */
struct tls_worker;

/* strict_sni: see struct tls_handshaking. kernel: see platform_has_ktls(). NULL: ENOMEM. */
struct tls_worker *tls_worker_new(bool strict_sni, bool kernel);
void tls_worker_free(struct tls_worker *worker); /* NULL is allowed */

/* The certificates for handshakes from now on. Takes the reference over. */
void tls_use_certificates(struct tls_worker *worker, struct certificates *certificates);

struct tls;

/* The server's side of TLS on the adopted socket fd, which stays the caller's. NULL: ENOMEM. */
struct tls *tls_new(struct tls_worker *worker, io_loop *loop, int fd);
void tls_free(struct tls *tls); /* NULL is allowed */

/* Goes on with the handshake. TLS_DONE: it is complete; a tls_read() has to follow at once. TLS_AGAIN: for more bytes,
 * or for room (tls_blocked()). TLS_CLEAR: the client speaks HTTP without TLS; what it said lies in buffer, of TLS_ROOM
 * bytes, and its length in *length. */
enum tls_result { TLS_DONE, TLS_AGAIN, TLS_FAILED, TLS_CLEAR };
enum tls_result tls_handshake(struct tls *tls, void *buffer, size_t *length);

/* Whether HTTP/2 was agreed upon (ALPN). */
bool tls_chose_http2(const struct tls *tls);

/* As io_tryread(), for at least TLS_ROOM bytes. 0: the peer has said that it will send nothing more. All that was there
 * is handed out: when the socket is readable again there is more. */
ssize_t tls_read(struct tls *tls, void *buffer, size_t length);

/* Whether the peer has said that it will send nothing more. */
bool tls_ended(const struct tls *tls);

/* As iob_send(), but for IOB_AGAIN, which there may be with an empty batch, too: call again. IO_MORE: the connection
 * ends with this batch, so the peer is told so (close_notify). */
enum iob_result tls_send(struct tls *tls, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Whether it waits for room in the socket, for the handshake to go on or for what it has sealed: then, when there is,
 * tls_handshake(), or tls_send() or tls_flush(), is to be called. */
bool tls_blocked(const struct tls *tls);

/* Sends what is sealed and not sent, without a batch. */
enum iob_result tls_flush(struct tls *tls);

/* Bytes of memory that are kept for it, but for OpenSSL's. */
size_t tls_memory(const struct tls *tls);

/* Tells the peer that nothing more will be sent, if that goes out at once. */
void tls_close(struct tls *tls);

#endif
