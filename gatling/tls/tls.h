/* tls.h - TLS as a filter between a connection and io/. OpenSSL handles handshakes, and the records of TLS 1.2; those
 * of TLS 1.3 are records.h's. The bytes go through io/, so that every event mechanism works. If the kernel encrypts
 * records (kTLS), a batch goes to the socket unchanged, and files of HTTP/1.1 by sendfile. Otherwise files are read
 * into the plaintext of records of up to 16 KB, and several records are sent together.
 *
 * An idle connection owns its keys, or its SSL. Input and encrypted output are in buffers of the worker; a connection
 * keeps only a part of a record, and the output that its socket does not take. */
#ifndef GATLING_TLS_TLS_H
#define GATLING_TLS_TLS_H

#include "gatling/tls/certificates.h"
#include "gatling/tls/records.h"
#include "io/iob.h"

enum {
	/* Bytes in each of the first records. Such a record fits into a segment of a path with an MTU of 1500, over IPv6
	 * with timestamps, so that the client can read it when that segment has come. */
	TLS_FIRST_RECORD = 1392,
	TLS_FIRST_BYTES = 14 * 1024, /* sent in such records; about as many as precede the first acknowledgement */
	/* Bytes encrypted at a time. With the overhead of four records (29 bytes each in TLS 1.2, 22 in 1.3) they fill 45
	 * segments of a path with an MTU of 1500 (1448 bytes over IPv4 with timestamps), and are one packet of the loopback
	 * interface. Up to TLS_SLACK bytes that remain are encrypted together with them. */
	TLS_BATCH = 45 * 1448 - 4 * 29,
	TLS_SLACK = 2 * 1024,
	TLS_READ = 16 * 1024,             /* bytes read at a time */
	TLS_UNSENT_MAX = 128 * 1024,      /* bytes encrypted and not sent; more: the connection ends. Handshakes and answers
										 to key updates can cause that; responses wait before. */
	TLS_ROOM = RECORD_MAX + TLS_READ, /* bytes of the smallest buffer for tls_read() */
	/* Bytes that OpenSSL 3.0 holds for a connection during the handshake, and after it if the SSL stays (growth of
	 * resident memory); after it since 3.2, whose records have more state. */
	TLS_HANDSHAKE_MEMORY = 46 * 1024,
	TLS_SESSION_MEMORY = 14 * 1024,
	TLS_SESSION_MEMORY_3_2 = 28 * 1024,
	/* Key updates that a client may send in a second (RFC 8446, section 4.6.3); more: the connection ends. Each takes
	 * 15 us to compute, and has 27 bytes. */
	TLS_RENEWALS = 32,
	/* Handshakes started in one turn of the loop; each takes up to a millisecond to compute. */
	TLS_HANDSHAKES = 8
};

/* The state that the connections of a worker share. */
struct tls_worker;

/* Returns NULL if memory runs out. strict_sni: see struct tls_handshaking. kernel: see platform_has_ktls().
 * *library_memory: counts the bytes of tls_library_memory() of all connections. */
struct tls_worker *tls_worker_new(bool strict_sni, bool kernel, size_t *library_memory);
void tls_worker_free(struct tls_worker *worker); /* NULL is allowed */

/* Sets the certificates for all further handshakes, and takes the reference over. */
void tls_use_certificates(struct tls_worker *worker, struct certificates *certificates);

struct tls;

/* Returns the server's side of TLS on the adopted socket fd, which the caller still owns; or NULL if memory runs
 * out. */
struct tls *tls_new(struct tls_worker *worker, io_loop *loop, int fd);
void tls_release(struct tls *tls); /* NULL is allowed */

/* Continues the handshake. TLS_DONE: it is complete; call tls_read() at once. TLS_AGAIN: call again when more bytes
 * have arrived, or the socket has room (tls_blocked()). TLS_CLEAR: the client uses HTTP without TLS; its first *length
 * bytes are in buffer (TLS_ROOM bytes). */
enum tls_result { TLS_DONE, TLS_AGAIN, TLS_FAILED, TLS_CLEAR };
enum tls_result tls_handshake(struct tls *tls, void *buffer, size_t *length);

/* Returns whether the handshake continued an earlier session. */
bool tls_resumed(const struct tls *tls);

/* Returns whether the kernel encrypts the records. */
bool tls_in_kernel(const struct tls *tls);

/* Returns whether HTTP/2 was negotiated (ALPN). */
bool tls_chose_http2(const struct tls *tls);

/* Does what io_tryread() does; the buffer has at least TLS_ROOM bytes. Returns 0 if the peer has ended its side. Leaves
 * nothing unread in the buffers: there is more when the socket is readable again. */
ssize_t tls_read(struct tls *tls, void *buffer, size_t length);

/* Returns whether the peer has ended its side by a close_notify. */
bool tls_ended(const struct tls *tls);

/* Does what iob_send() does, but may return IOB_AGAIN with an empty batch, too: call again. IO_MORE: the connection
 * ends with this batch, and a close_notify follows it. */
enum iob_result tls_send(struct tls *tls, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent);

/* Returns whether the handshake, or encrypted output, waits for room in the socket. When there is room, call
 * tls_handshake(), tls_send() or tls_flush(). */
bool tls_blocked(const struct tls *tls);

/* Sends encrypted output that was kept, without a batch. */
enum iob_result tls_flush(struct tls *tls);

/* Sends what tls_handshake() or tls_read() has to say at their end, such as session tickets, if tls_send() has not sent
 * it with something else: call it when the connection begins to wait. */
enum iob_result tls_send_held(struct tls *tls);

/* Returns how many bytes of memory the connection holds, without those of tls_library_memory(). */
size_t tls_memory(const struct tls *tls);

/* Returns an estimate of the bytes of memory that OpenSSL takes for the connection. */
size_t tls_library_memory(const struct tls *tls);

/* Sends a close_notify, if the socket takes it at once. */
void tls_close(struct tls *tls);

/* For SSL_CTX_set_keylog_callback(): OpenSSL tells the secrets that records.h needs only to those who log them. */
void tls_note_secret(const SSL *ssl, const char *line);

#endif
