/* tls.h - TLS as a filter between a connection and io/. OpenSSL makes handshakes and records; the bytes go through io/,
 * so that each event mechanism carries them. If the kernel encrypts records (kTLS), the batch goes to the socket as it
 * is, and the files of HTTP/1.1 by sendfile; otherwise files are read into the plaintext of records of up to 16 KB, and
 * several records go into one send.
 *
 * An idle connection owns only its SSL: input and encrypted output are in buffers of the worker, and a connection keeps
 * only the output that its socket does not take. */
#ifndef GATLING_TLS_TLS_H
#define GATLING_TLS_TLS_H

#include "gatling/tls/certificates.h"
#include "io/iob.h"

enum {
	TLS_RECORD_MAX = 16 * 1024, /* bytes of plaintext (RFC 8446, section 5.1) */
	/* Bytes in each of the first records. One fits into a segment of a path with an MTU of 1500, over IPv6 with
	 * timestamps: the client can read it before all of a large record has arrived. */
	TLS_FIRST_RECORD = 1392,
	TLS_FIRST_BYTES = 14 * 1024, /* sent in such records: about as many as precede the first acknowledgement */
	/* Bytes encrypted at a time: with what four records add to them (29 bytes each in TLS 1.2, 22 in 1.3) they fill 45
	 * segments of a path with an MTU of 1500 (1448 bytes over IPv4 with timestamps), and are one packet of the loopback
	 * interface. A little more, up to TLS_SLACK, is encrypted with them instead of by itself. */
	TLS_BATCH = 45 * 1448 - 4 * 29,
	TLS_SLACK = 2 * 1024,
	TLS_READ = 16 * 1024,        /* bytes read at a time */
	TLS_UNSENT_MAX = 128 * 1024, /* bytes encrypted and not sent; more, which OpenSSL alone can cause (answers wait
									before that): the connection ends */
	TLS_ROOM = TLS_READ + TLS_RECORD_MAX + 1024, /* the least buffer of tls_read() */
	/* Bytes that OpenSSL 3.0 holds for a connection during the handshake and after it (growth of resident memory). */
	TLS_HANDSHAKE_MEMORY = 46 * 1024,
	TLS_SESSION_MEMORY = 14 * 1024,
	/* Times in a second that a client may renew its keys, or have us renew ours (RFC 8446, section 4.6.3); more: the
	 * connection ends. Each computes for 15 us, and comes in 27 bytes. */
	TLS_RENEWALS = 32,
	/* Handshakes started in one turn of the loop; each computes for up to a millisecond. */
	TLS_HANDSHAKES = 8
};

/* The state that the connections of a worker share. */
struct tls_worker;

/* strict_sni: see struct tls_handshaking. kernel: see platform_has_ktls(). Returns NULL: ENOMEM. */
struct tls_worker *tls_worker_new(bool strict_sni, bool kernel);
void tls_worker_free(struct tls_worker *worker); /* NULL is allowed */

/* Sets the certificates of all further handshakes, and takes the reference over. */
void tls_use_certificates(struct tls_worker *worker, struct certificates *certificates);

struct tls;

/* Returns the server's side of TLS on the adopted socket fd, which stays the caller's. NULL: ENOMEM. */
struct tls *tls_new(struct tls_worker *worker, io_loop *loop, int fd);
void tls_free(struct tls *tls); /* NULL is allowed */

/* Continues the handshake. TLS_DONE: it is complete; call tls_read() at once. TLS_AGAIN: call again when more bytes
 * have arrived, or the socket has room (tls_blocked()). TLS_CLEAR: the client speaks HTTP without TLS; its first bytes
 * are in buffer (TLS_ROOM bytes), *length of them. */
enum tls_result { TLS_DONE, TLS_AGAIN, TLS_FAILED, TLS_CLEAR };
enum tls_result tls_handshake(struct tls *tls, void *buffer, size_t *length);

/* Returns whether the handshake continued an earlier session. */
bool tls_resumed(const struct tls *tls);

/* Returns whether the kernel encrypts the records. */
bool tls_in_kernel(const struct tls *tls);

/* Returns whether HTTP/2 was negotiated (ALPN). */
bool tls_chose_http2(const struct tls *tls);

/* Reads as io_tryread(), into at least TLS_ROOM bytes. Returns 0 if the peer has said that it will send nothing more.
 * It leaves nothing unread: more has arrived when the socket is readable again. */
ssize_t tls_read(struct tls *tls, void *buffer, size_t length);

/* Returns whether the peer has said that it will send nothing more. */
bool tls_ended(const struct tls *tls);

/* Sends as iob_send(), but may return IOB_AGAIN with an empty batch, too: call again. IO_MORE: the connection ends with
 * this batch, and a close_notify follows it. */
enum iob_result tls_send(struct tls *tls, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Returns whether the handshake, or encrypted output, waits for room in the socket: when there is some, call
 * tls_handshake(), or tls_send() or tls_flush(). */
bool tls_blocked(const struct tls *tls);

/* Sends encrypted output that was kept, without a batch. */
enum iob_result tls_flush(struct tls *tls);

/* Returns the bytes of memory that it holds, without those of OpenSSL. */
size_t tls_memory(const struct tls *tls);

/* Returns about how many bytes of memory OpenSSL holds for a connection; for all connections of a worker. */
size_t tls_library_memory(const struct tls *tls);
size_t tls_worker_library_memory(const struct tls_worker *worker);

/* Sends a close_notify, if the socket takes it at once. */
void tls_close(struct tls *tls);

#endif
