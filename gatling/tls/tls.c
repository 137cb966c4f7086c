/* tls.c - see tls.h. OpenSSL reads from and writes to the buffers of the worker through a BIO defined here. Its error
 * queue, which SSL_get_error() inspects, is empty between two calls: it is cleared only after an error, since that
 * takes 2 % of a small response. */
#include "gatling/tls/tls.h"

#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* bytes, with the overhead of small records and a handshake flight */
enum { SEALED_ROOM = TLS_BATCH + 16 * 1024 };

enum { OPENSSL_3_2 = 0x30200000 };

struct tls_worker {
	struct tls_handshaking handshaking;
	struct certificates *certificates;
	BIO_METHOD *method;
	bool kernel; /* the kernel may encrypt records */
	size_t *library_memory;
	/* The connection whose bytes are in the buffers. Input stays there between two calls only at the end of a
	 * handshake, see tls_handshake(), and output until something is sent with it, tls_send_held() or another connection
	 * needs the buffers. */
	struct tls *owner;
	size_t in_at, in_end, sealed_length;
	char in[TLS_READ];        /* read from its socket, not decrypted yet */
	char sealed[SEALED_ROOM]; /* encrypted, not sent yet */
	char plain[TLS_BATCH + TLS_SLACK];
};

struct tls {
	SSL *ssl;
	struct tls_worker *worker;
	io_loop *loop;
	int fd;
	uint32_t library_memory;
	uint32_t sent; /* bytes of plaintext, counted up to TLS_FIRST_BYTES */
	bool kernel;   /* the kernel encrypts the records */
	bool ended;    /* the peer has sent a close_notify */
	bool begun;    /* bytes have arrived, */
	bool answered; /* and have been answered */
	bool waits;    /* the kernel's socket was full during the handshake */
	bool failed;   /* sending failed, memory ran out, or TLS_UNSENT_MAX or TLS_RENEWALS was exceeded */
	uint8_t renewals;
	uint32_t renewed_s; /* the second in which they are counted */
	char *unsent;
	size_t unsent_at, unsent_end;
};

/* --- the BIO --- */

static int bio_read(BIO *bio, char *buffer, size_t length, size_t *n) {
	const struct tls *t = BIO_get_data(bio);
	struct tls_worker *w = t->worker;
	BIO_clear_retry_flags(bio);
	if (t->failed) return 0;
	*n = w->in_end - w->in_at < length ? w->in_end - w->in_at : length;
	if (!*n) {
		BIO_set_retry_read(bio);
		return 0;
	}
	memcpy(buffer, w->in + w->in_at, *n);
	w->in_at += *n;
	return 1;
}

/* Copies in pieces, so that memcpy(3) does not use one long "rep movsb", which takes 25 times as long on an AMD EPYC if
 * the target is 1 to 31 bytes ahead of the source modulo 4096. */
static void copy(char *to, const char *from, size_t length) {
	enum { PIECE = 4096 };
	for (size_t n; length; to += n, from += n, length -= n) {
		n = length < PIECE ? length : PIECE;
		memcpy(to, from, n);
	}
}

static bool keep_unsent(struct tls *t, const char *data, size_t length) {
	if (!length) return true;
	size_t kept = t->unsent_end - t->unsent_at;
	char *unsent = kept + length <= TLS_UNSENT_MAX ? malloc(kept + length) : NULL;
	if (!unsent) {
		t->failed = true;
		return false;
	}
	if (t->unsent) memcpy(unsent, t->unsent + t->unsent_at, kept);
	copy(unsent + kept, data, length);
	free(t->unsent);
	t->unsent = unsent;
	t->unsent_at = 0;
	t->unsent_end = kept + length;
	return true;
}

static int bio_write(BIO *bio, const char *data, size_t length, size_t *n) {
	struct tls *t = BIO_get_data(bio);
	struct tls_worker *w = t->worker;
	BIO_clear_retry_flags(bio);
	*n = length;
	if (length > sizeof w->sealed - w->sealed_length) { /* a very long chain of certificates */
		bool kept = keep_unsent(t, w->sealed, w->sealed_length) && keep_unsent(t, data, length);
		w->sealed_length = 0;
		return kept ? 1 : -1; /* not 0, which OpenSSL 3.2 to 3.5.4 take for success */
	}
	copy(w->sealed + w->sealed_length, data, length);
	w->sealed_length += length;
	return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer) {
	(void)bio, (void)number, (void)pointer;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method_new(void) {
	BIO_METHOD *m = BIO_meth_new(BIO_TYPE_SOURCE_SINK, "io");
	if (m && BIO_meth_set_read_ex(m, bio_read) && BIO_meth_set_write_ex(m, bio_write) &&
		BIO_meth_set_ctrl(m, bio_control))
		return m;
	BIO_meth_free(m);
	return NULL;
}

/* --- sending --- */

static enum iob_result fail(struct tls *t) {
	t->failed = true;
	return IOB_FAILED;
}

/* Sends the output that was kept. */
static enum iob_result flush_unsent(struct tls *t) {
	ssize_t n = io_trywrite(t->loop, t->fd, t->unsent + t->unsent_at, t->unsent_end - t->unsent_at);
	if (n == -1) return errno == EAGAIN ? IOB_AGAIN : fail(t);
	t->unsent_at += (size_t)n;
	if (t->unsent_at < t->unsent_end) return IOB_AGAIN;
	free(t->unsent);
	t->unsent = NULL;
	return IOB_DONE;
}

/* Sends the output that was kept, then the new output, and keeps what the socket does not take. */
static enum iob_result flush(struct tls *t, enum io_rest rest) {
	struct tls_worker *w = t->worker;
	struct iovec part = {.iov_base = w->sealed, .iov_len = w->sealed_length};
	if (t->failed) return IOB_FAILED;
	enum iob_result result = t->unsent ? flush_unsent(t) : IOB_DONE;
	if (!part.iov_len || result == IOB_FAILED) return result;
	w->sealed_length = 0;
	ssize_t n = result == IOB_DONE ? io_trywritev(t->loop, t->fd, &part, 1, rest) : 0;
	if (n == -1 && errno != EAGAIN) return fail(t);
	if (n == -1) n = 0;
	if ((size_t)n == part.iov_len) return IOB_DONE;
	return keep_unsent(t, w->sealed + n, part.iov_len - (size_t)n) ? IOB_AGAIN : IOB_FAILED;
}

static void claim(struct tls *t) {
	struct tls_worker *w = t->worker;
	if (w->owner == t) return;
	if (w->owner && w->sealed_length) (void)flush(w->owner, IO_LAST);
	w->owner = t;
	w->in_at = w->in_end = w->sealed_length = 0;
}

enum iob_result tls_flush(struct tls *t) {
	claim(t);
	return flush(t, IO_LAST);
}

enum iob_result tls_send_held(struct tls *t) {
	return t->worker->owner == t && t->worker->sealed_length ? flush(t, IO_LAST) : IOB_DONE;
}

bool tls_blocked(const struct tls *t) { return t->unsent || t->waits; }

static void set_library_memory(struct tls *t, uint32_t bytes) {
	*t->worker->library_memory += (size_t)bytes - t->library_memory;
	t->library_memory = bytes;
}

size_t tls_library_memory(const struct tls *t) { return t->library_memory; }

size_t tls_memory(const struct tls *t) { return t->unsent ? t->unsent_end : 0; }

/* Encrypts all bytes, which the BIO always takes. Returns false, and sets t->failed, if OpenSSL fails. */
static bool seal(struct tls *t, const char *plain, size_t length) {
	/* keeps OpenSSL's buffer until the last record; since 3.2 the mode applies to a key, not to each record */
	const bool keeps = length > TLS_RECORD_MAX && OpenSSL_version_num() < OPENSSL_3_2;
	if (keeps) SSL_clear_mode(t->ssl, SSL_MODE_RELEASE_BUFFERS);
	while (length) {
		size_t record = t->sent < TLS_FIRST_BYTES ? TLS_FIRST_RECORD : TLS_RECORD_MAX, done;
		if (record > length) record = length;
		if (keeps && record == length) SSL_set_mode(t->ssl, SSL_MODE_RELEASE_BUFFERS);
		if (SSL_write_ex(t->ssl, plain, record, &done) != 1) {
			ERR_clear_error();
			t->failed = true;
			return false;
		}
		if (t->sent < TLS_FIRST_BYTES) t->sent += (uint32_t)record;
		plain += record;
		length -= record;
	}
	return true;
}

/* Sends a close_notify. Linux accepts records for which the socket has no room, and drops them if the socket is shut
 * down before they are sent. So the shutdown waits until there is room after another record, which pushes those before
 * it. */
static enum iob_result end_kernel(struct tls *t) {
	struct pollfd socket = {.fd = t->fd, .events = POLLOUT};
	int done = SSL_shutdown(t->ssl);
	bool taken = done >= 0 || SSL_get_error(t->ssl, done) != SSL_ERROR_WANT_WRITE;
	ERR_clear_error();
	if (taken) {
		if (poll(&socket, 1, 0) != 0) return IOB_DONE;
		SSL_set_shutdown(t->ssl, SSL_get_shutdown(t->ssl) & SSL_RECEIVED_SHUTDOWN); /* send it again, to push */
	}
	return io_eagain_write(t->loop, t->fd) == 0 ? IOB_AGAIN : IOB_FAILED;
}

/* Encrypts up to `most` bytes from the front of a batch, which has at least as many: in place if they are one piece of
 * memory, otherwise after copying them together. Returns how many, or -1 with t->failed set, or errno. */
static ssize_t seal_front(struct tls *t, iob *batch, size_t most) {
	size_t length;
	const char *front = iob_front(batch, &length);
	if (front && length >= most) {
		if (!seal(t, front, most)) return -1;
		iob_drop(batch, most);
		return (ssize_t)most;
	}
	ssize_t n = iob_take(t->loop, t->fd, batch, t->worker->plain, most);
	return n == -1 || seal(t, t->worker->plain, (size_t)n) ? n : -1;
}

enum iob_result tls_send(struct tls *t, iob *batch, uint64_t most, enum io_rest rest, uint64_t *sent) {
	if (t->kernel) {
		enum iob_result result = iob_send(t->loop, t->fd, batch, most, rest, sent);
		return result == IOB_DONE && rest == IO_MORE ? end_kernel(t) : result;
	}
	claim(t);
	enum iob_result result = t->failed ? IOB_FAILED : t->unsent ? flush(t, IO_LAST) : IOB_DONE;
	uint64_t left = iob_bytesleft(batch);
	while (result == IOB_DONE && left) {
		if (!most) return IOB_AGAIN;
		const uint64_t next = left < most ? left : most;
		ssize_t n = seal_front(t, batch, next <= TLS_BATCH + TLS_SLACK ? (size_t)next : TLS_BATCH);
		if (n == -1) return errno == EAGAIN && !t->failed ? IOB_AGAIN : IOB_FAILED;
		left -= (uint64_t)n;
		most -= (uint64_t)n;
		*sent += (uint64_t)n;
		bool last = !left && rest == IO_MORE;
		if (last) (void)SSL_shutdown(t->ssl);
		result = flush(t, last ? IO_MORE : IO_LAST);
	}
	return result;
}

void tls_close(struct tls *t) {
	if (t->failed || t->unsent || !SSL_is_init_finished(t->ssl) || SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN) return;
	claim(t);
	(void)SSL_shutdown(t->ssl);
	ERR_clear_error();
	(void)flush(t, IO_MORE);
}

/* --- receiving --- */

/* Counts the key updates of the client, of which one SSL_read_ex() may handle many. OpenSSL calls it at each step. */
static void note_step(const SSL *ssl, int where, int result) {
	struct tls *t = BIO_get_data(SSL_get_rbio(ssl));
	(void)result;
	if (where != SSL_CB_ACCEPT_LOOP || SSL_get_state(ssl) != TLS_ST_SR_KEY_UPDATE) return;
	const uint32_t now_s = (uint32_t)(io_now(t->loop) / 1000);
	if (now_s != t->renewed_s) t->renewals = 0;
	t->renewed_s = now_s;
	t->failed |= ++t->renewals > TLS_RENEWALS;
}

/* Fills the input buffer of the worker. Returns what io_tryread() returns. */
static ssize_t fill(struct tls *t) {
	struct tls_worker *w = t->worker;
	ssize_t n = io_tryread(t->loop, t->fd, w->in, sizeof w->in);
	w->in_at = 0;
	w->in_end = n > 0 ? (size_t)n : 0;
	return n;
}

/* Returns how many bytes OpenSSL allocates for a handshake message that begins with these bytes: the length that a
 * ClientHello announces (RFC 8446, sections 4 and 5.1), or OpenSSL's maximum if it is not known. */
static uint32_t message_memory(const char *at, size_t length) {
	enum { RECORD_HEADER = 5, MESSAGE_HEADER = 4, MESSAGE_MAX = 131396 /* CLIENT_HELLO_MAX_LENGTH */ };
	enum { HANDSHAKE = 22, CLIENT_HELLO = 1 };
	const unsigned char *octet = (const unsigned char *)at;
	const bool whole = length >= RECORD_HEADER + MESSAGE_HEADER && (octet[3] || octet[4] >= MESSAGE_HEADER);
	if (!whole || octet[0] != HANDSHAKE || octet[5] != CLIENT_HELLO) return MESSAGE_MAX;
	uint32_t announced = (uint32_t)octet[6] << 16 | (uint32_t)octet[7] << 8 | octet[8];
	return announced < MESSAGE_MAX ? announced : MESSAGE_MAX;
}

enum tls_result tls_handshake(struct tls *t, void *buffer, size_t *length) {
	struct tls_worker *w = t->worker;
	bool blocked = tls_blocked(t);
	claim(t);
	ssize_t n = blocked ? 0 : fill(t);
	if (n == 0 && !blocked) return TLS_FAILED;
	if (n == -1) return errno == EAGAIN ? TLS_AGAIN : TLS_FAILED;
	bool first = !t->begun;
	t->begun = true;
	if (first && n > 0 && w->in[0] >= 'A' && w->in[0] <= 'Z') { /* a method: a record begins with 22 */
		memcpy(buffer, w->in, (size_t)n);
		*length = (size_t)n;
		return TLS_CLEAR;
	}
	if (n > 0 && (first || t->answered)) /* otherwise it is more of the same message */
		set_library_memory(t, TLS_HANDSHAKE_MEMORY + message_memory(w->in, w->in_end));
	int done = SSL_accept(t->ssl);
	t->answered |= w->sealed_length > 0;
	int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, done);
	ERR_clear_error();
	enum iob_result result = done == 1 ? IOB_DONE : flush(t, IO_LAST); /* an alert, too */
	if (result == IOB_FAILED || t->failed ||
		(done != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE))
		return TLS_FAILED;
	t->waits = error == SSL_ERROR_WANT_WRITE;
	if (t->waits && io_eagain_write(t->loop, t->fd) == -1) return TLS_FAILED;
	if (done != 1) return TLS_AGAIN;
	t->kernel = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	if (!t->kernel && w->kernel) { /* the kernel does not support this cipher: encrypt here, send through io/ */
		BIO *bio = SSL_get_rbio(t->ssl);
		if (!BIO_up_ref(bio)) return TLS_FAILED;
		SSL_set0_wbio(t->ssl, bio);
	}
	set_library_memory(t, OpenSSL_version_num() < OPENSSL_3_2 ? TLS_SESSION_MEMORY : TLS_SESSION_MEMORY_3_2);
	SSL_set_info_callback(t->ssl, note_step);
	return TLS_DONE;
}

bool tls_ended(const struct tls *t) { return t->ended; }

bool tls_in_kernel(const struct tls *t) { return t->kernel; }

bool tls_resumed(const struct tls *t) { return SSL_session_reused(t->ssl); }

bool tls_chose_http2(const struct tls *t) {
	const unsigned char *name;
	unsigned length;
	SSL_get0_alpn_selected(t->ssl, &name, &length);
	return length == 2 && memcmp(name, "h2", 2) == 0;
}

ssize_t tls_read(struct tls *t, void *buffer, size_t length) {
	struct tls_worker *w = t->worker;
	size_t got = 0, n;
	claim(t);
	if (t->ended) return 0;
	if (w->in_at == w->in_end) { /* otherwise bytes came with the end of the handshake */
		ssize_t filled = fill(t);
		if (filled <= 0) return filled;
	}
	bool more = true; /* a call that finds nothing would allocate a buffer */
	while (more && SSL_read_ex(t->ssl, (char *)buffer + got, length - got, &n) == 1) {
		got += n;
		more = w->in_at < w->in_end || SSL_pending(t->ssl);
	}
	int error = more ? SSL_get_error(t->ssl, 0) : SSL_ERROR_WANT_READ;
	w->in_at = w->in_end = 0;
	t->ended = error == SSL_ERROR_ZERO_RETURN;
	if (error != SSL_ERROR_WANT_READ) ERR_clear_error();
	const bool holds = got && error == SSL_ERROR_WANT_READ;
	enum iob_result result = holds ? IOB_DONE : flush(t, IO_LAST); /* an answer to a key update, or an alert */
	if ((error != SSL_ERROR_WANT_READ && !t->ended) || result == IOB_FAILED) {
		errno = EPROTO;
		return -1;
	}
	errno = EAGAIN;
	return got || t->ended ? (ssize_t)got : -1;
}

/* --- workers and connections --- */

static bool local_address(const SSL *ssl, struct peer *address) {
	const struct tls *t = BIO_get_data(SSL_get_rbio(ssl));
	return peer_local(t->fd, address);
}

struct tls_worker *tls_worker_new(bool strict_sni, bool kernel, size_t *library_memory) {
	struct tls_worker *w = calloc(1, sizeof *w);
	if (!w || !(w->method = method_new())) {
		free(w);
		return NULL;
	}
	w->handshaking.strict_sni = strict_sni;
	w->handshaking.local = local_address;
	w->kernel = kernel;
	w->library_memory = library_memory;
	return w;
}

void tls_worker_free(struct tls_worker *w) {
	if (!w) return;
	certificates_release(w->certificates);
	BIO_meth_free(w->method);
	free(w);
}

void tls_use_certificates(struct tls_worker *w, struct certificates *certificates) {
	certificates_release(w->certificates);
	w->certificates = certificates;
	w->handshaking.certificates = certificates;
}

struct tls *tls_new(struct tls_worker *w, io_loop *loop, int fd) {
	struct tls *t = calloc(1, sizeof *t);
	if (!t) return NULL;
	*t = (struct tls){.worker = w, .loop = loop, .fd = fd};
	t->ssl = SSL_new(certificates_context(w->certificates));
	BIO *in = t->ssl && tls_set_handshaking(t->ssl, &w->handshaking) ? BIO_new(w->method) : NULL, *out = in;
	if (in && w->kernel) out = BIO_new_socket(fd, BIO_NOCLOSE);
	if (!out) {
		BIO_free(in);
		SSL_free(t->ssl);
		free(t);
		ERR_clear_error();
		return NULL;
	}
	BIO_set_data(in, t);
	SSL_set_bio(t->ssl, in, out);
	SSL_set_accept_state(t->ssl);
	set_library_memory(t, TLS_HANDSHAKE_MEMORY);
	return t;
}

void tls_release(struct tls *t) {
	if (!t) return;
	if (t->worker->owner == t) t->worker->owner = NULL;
	set_library_memory(t, 0);
	SSL_free(t->ssl);
	free(t->unsent);
	free(t);
}
