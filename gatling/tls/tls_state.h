/* tls_state.h - what tls_connection.c and tls_handshake.c share. */
#ifndef GATLING_TLS_TLS_STATE_H
#define GATLING_TLS_TLS_STATE_H

#include "gatling/tls/tls.h"

/* bytes, with the overhead of small records and a handshake flight */
enum { TLS_SEALED = TLS_BATCH + 16 * 1024 };

enum { OPENSSL_3_2 = 0x30200000 }; /* as a version number */

struct tls_worker {
	struct tls_handshaking handshaking;
	struct certificates *certificates;
	BIO_METHOD *method;
	struct record_methods *methods;
	bool kernel; /* the kernel may encrypt records */
	size_t *library_memory;
	/* The connection whose bytes are in the buffers. Input stays there between two calls only at the end of a
	 * handshake, see tls_handshake(), and output until something is sent with it, tls_send_held() or another connection
	 * needs the buffers. */
	struct tls *owner;
	size_t in_at, in_end, sealed_length;
	char in[RECORD_MAX + TLS_READ]; /* a part of a record, and what was read behind it; not decrypted yet */
	char sealed[TLS_SEALED];        /* encrypted, not sent yet */
	char plain[TLS_BATCH + TLS_SLACK];
};

/* What OpenSSL tells during a handshake of TLS 1.3. */
struct tls_secrets {
	struct traffic client, server;
	bool has_client, has_server;
};

struct tls {
	SSL *ssl;                    /* NULL: the handshake is complete, and these are used: */
	struct records *records;     /* or NULL */
	struct tls_secrets *secrets; /* NULL before they are known and after the handshake */
	struct tls_worker *worker;
	io_loop *loop;
	int fd;
	uint32_t library_memory;
	uint32_t sent;       /* bytes of plaintext, counted up to TLS_FIRST_BYTES */
	bool kernel;         /* the kernel encrypts the records */
	bool resumed, http2; /* see tls_resumed(), tls_chose_http2() */
	bool ended;          /* the peer has sent a close_notify, */
	bool closed;         /* and this side has sent one, or another alert, in records of its own */
	bool begun;          /* bytes have arrived, */
	bool answered;       /* and have been answered */
	bool waits;          /* the kernel's socket was full during the handshake */
	bool failed;         /* sending failed, memory ran out, or TLS_UNSENT_MAX or TLS_RENEWALS was exceeded */
	uint8_t renewals;
	uint32_t renewed_s; /* the second in which they are counted */
	char *part;         /* of a record that has not come as a whole, or NULL */
	uint32_t part_length;
	char *unsent;
	size_t unsent_at, unsent_end;
};

/* Makes the buffers of the worker those of the connection. */
void tls_claim(struct tls *tls);

/* Fills the input buffer. Returns what io_tryread() returns. */
ssize_t tls_fill(struct tls *tls);

/* Sends the output that was kept, then the new output, and keeps what the socket does not take. */
enum iob_result tls_flush_output(struct tls *tls, enum io_rest rest);

/* Sets the bytes of memory that are counted for the connection beside tls_memory(). */
void tls_set_memory(struct tls *tls, uint32_t bytes);

/* Counts a key update of the client, and sets tls->failed if there are too many. */
void tls_count_renewal(struct tls *tls);

void tls_forget_secrets(struct tls *tls);

#endif
