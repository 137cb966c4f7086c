/* tls_connection.c - see tls.h: connections, from their handshake on. OpenSSL reads from and writes to the buffers of
 * the worker through a BIO defined here. Its error queue, which SSL_get_error() inspects, is empty between two calls:
 * it is cleared only after an error, since that takes 2 % of a small response. */
#include <errno.h>
#include <openssl/err.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/tls/tls_state.h"

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

/* Returns where up to TLS_SEALED bytes of output go. If they do not fit behind those that are there, as with a very
 * long chain of certificates, these are kept elsewhere. Returns NULL, and sets t->failed, if that is not possible. */
static char *make_room(struct tls *t, size_t length) {
	struct tls_worker *w = t->worker;
	if (length > sizeof w->sealed - w->sealed_length) {
		if (!keep_unsent(t, w->sealed, w->sealed_length)) return NULL;
		w->sealed_length = 0;
	}
	return w->sealed + w->sealed_length;
}

static int bio_write(BIO *bio, const char *data, size_t length, size_t *n) {
	struct tls *t = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	*n = length < TLS_SEALED ? length : TLS_SEALED;
	char *to = make_room(t, *n);
	if (!to) return -1; /* not 0, which OpenSSL 3.2 to 3.5.4 take for success */
	copy(to, data, *n);
	t->worker->sealed_length += *n;
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

enum iob_result tls_flush_output(struct tls *t, enum io_rest rest) {
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

void tls_claim(struct tls *t) {
	struct tls_worker *w = t->worker;
	if (w->owner == t) return;
	if (w->owner && w->sealed_length) (void)tls_flush_output(w->owner, IO_LAST);
	w->owner = t;
	w->in_at = w->in_end = w->sealed_length = 0;
}

enum iob_result tls_flush(struct tls *t) {
	tls_claim(t);
	return tls_flush_output(t, IO_LAST);
}

enum iob_result tls_send_held(struct tls *t) {
	return t->worker->owner == t && t->worker->sealed_length ? tls_flush_output(t, IO_LAST) : IOB_DONE;
}

bool tls_blocked(const struct tls *t) { return t->unsent || t->waits; }

void tls_set_memory(struct tls *t, uint32_t bytes) {
	*t->worker->library_memory += (size_t)bytes - t->library_memory;
	t->library_memory = bytes;
}

size_t tls_library_memory(const struct tls *t) { return t->library_memory; }

size_t tls_memory(const struct tls *t) { return t->part_length + (t->unsent ? t->unsent_end : 0); }

/* Counts n bytes that were written to make_room(). Returns false, and sets t->failed, if there are none. */
static bool append(struct tls *t, size_t n) {
	t->worker->sealed_length += n;
	t->failed |= !n;
	return n;
}

static bool seal_record(struct tls *t, const char *plain, size_t length) {
	size_t done;
	if (t->ssl) return SSL_write_ex(t->ssl, plain, length, &done) == 1;
	char *to = make_room(t, length + RECORD_ROOM);
	return to && append(t, records_seal(t->records, RECORD_APPLICATION_DATA, plain, length, to));
}

/* Adds an alert, after which nothing is sent. */
static void send_alert(struct tls *t, enum record_alert alert) {
	char *to = make_room(t, RECORD_ALERT_ROOM);
	if (to) (void)append(t, records_alert(t->records, alert, to));
	t->closed = true;
}

static void send_close_notify(struct tls *t) {
	if (t->ssl) (void)SSL_shutdown(t->ssl);
	else send_alert(t, ALERT_CLOSE_NOTIFY);
}

/* Encrypts all bytes, which the BIO always takes. Returns false, and sets t->failed, if OpenSSL fails. */
static bool seal(struct tls *t, const char *plain, size_t length) {
	/* keeps OpenSSL's buffer until the last record; since 3.2 the mode applies to a key, not to each record */
	const bool keeps = t->ssl && length > RECORD_CONTENT_MAX && OpenSSL_version_num() < OPENSSL_3_2;
	if (keeps) SSL_clear_mode(t->ssl, SSL_MODE_RELEASE_BUFFERS);
	while (length) {
		size_t record = t->sent < TLS_FIRST_BYTES ? TLS_FIRST_RECORD : RECORD_CONTENT_MAX;
		if (record > length) record = length;
		if (keeps && record == length) SSL_set_mode(t->ssl, SSL_MODE_RELEASE_BUFFERS);
		if (!seal_record(t, plain, record)) {
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
	tls_claim(t);
	enum iob_result result = t->failed ? IOB_FAILED : t->unsent ? tls_flush_output(t, IO_LAST) : IOB_DONE;
	uint64_t left = iob_bytesleft(batch);
	if (left && t->closed) return fail(t);
	while (result == IOB_DONE && left) {
		if (!most) return IOB_AGAIN;
		const uint64_t next = left < most ? left : most;
		ssize_t n = seal_front(t, batch, next <= TLS_BATCH + TLS_SLACK ? (size_t)next : TLS_BATCH);
		if (n == -1) return errno == EAGAIN && !t->failed ? IOB_AGAIN : IOB_FAILED;
		left -= (uint64_t)n;
		most -= (uint64_t)n;
		*sent += (uint64_t)n;
		bool last = !left && rest == IO_MORE;
		if (last) send_close_notify(t);
		result = tls_flush_output(t, last ? IO_MORE : IO_LAST);
	}
	return result;
}

void tls_close(struct tls *t) {
	const bool closed =
		t->ssl ? !SSL_is_init_finished(t->ssl) || SSL_get_shutdown(t->ssl) & SSL_SENT_SHUTDOWN : t->closed;
	if (t->failed || t->unsent || closed) return;
	tls_claim(t);
	send_close_notify(t);
	ERR_clear_error();
	(void)tls_flush_output(t, IO_MORE);
}

/* --- receiving --- */

void tls_count_renewal(struct tls *t) {
	const uint32_t now_s = (uint32_t)(io_now(t->loop) / 1000);
	if (now_s != t->renewed_s) t->renewals = 0;
	t->renewed_s = now_s;
	t->failed |= ++t->renewals > TLS_RENEWALS;
}

ssize_t tls_fill(struct tls *t) {
	struct tls_worker *w = t->worker;
	ssize_t n = io_tryread(t->loop, t->fd, w->in + t->part_length, TLS_READ);
	w->in_at = w->in_end = 0;
	if (n <= 0) return n;
	w->in_end = t->part_length + (size_t)n;
	if (t->part) memcpy(w->in, t->part, t->part_length);
	free(t->part);
	t->part = NULL;
	t->part_length = 0;
	return n;
}

bool tls_ended(const struct tls *t) { return t->ended; }

bool tls_in_kernel(const struct tls *t) { return t->kernel; }

bool tls_resumed(const struct tls *t) { return t->resumed; }

bool tls_chose_http2(const struct tls *t) { return t->http2; }

/* Has OpenSSL decrypt the input into a buffer. Sets *got, and t->ended. Returns false if that fails. */
static bool read_session(struct tls *t, char *to, size_t room, size_t *got) {
	const struct tls_worker *w = t->worker;
	bool more = true; /* a call that finds nothing would allocate a buffer */
	for (size_t n; more && SSL_read_ex(t->ssl, to + *got, room - *got, &n) == 1; *got += n)
		more = w->in_at < w->in_end || SSL_pending(t->ssl);
	const int error = more ? SSL_get_error(t->ssl, 0) : SSL_ERROR_WANT_READ;
	t->ended = error == SSL_ERROR_ZERO_RETURN;
	return error == SSL_ERROR_WANT_READ || t->ended;
}

static bool answer_renewal(struct tls *t) {
	char *to = make_room(t, RECORD_ROOM);
	return to && append(t, records_renew(t->records, to));
}

/* Keeps a part of a record until the rest has come. */
static bool keep_part(struct tls *t, struct slice part) {
	if (!part.length) return true;
	if (!(t->part = malloc(part.length))) return false;
	memcpy(t->part, part.at, part.length);
	t->part_length = (uint32_t)part.length;
	return true;
}

/* Does the same without OpenSSL's records. */
static bool read_records(struct tls *t, char *to, size_t *got) {
	const struct tls_worker *w = t->worker;
	struct slice input = {.at = w->in + w->in_at, .length = w->in_end - w->in_at};
	for (size_t n; !t->failed; *got += n) {
		const enum record_result result = records_open(t->records, &input, to + *got, &n);
		if (result == RECORD_PART) return keep_part(t, input);
		if (result == RECORD_END) return t->ended = true;
		if (result == RECORD_FAILED) {
			send_alert(t, records_fault(t->records));
			return false;
		}
		if (result == RECORD_RENEWED || result == RECORD_ASKED) tls_count_renewal(t);
		if (result == RECORD_ASKED && !answer_renewal(t)) return false;
	}
	return false;
}

ssize_t tls_read(struct tls *t, void *buffer, size_t length) {
	struct tls_worker *w = t->worker;
	size_t got = 0;
	tls_claim(t);
	if (t->ended) return 0;
	if (w->in_at == w->in_end) { /* otherwise bytes came with the end of the handshake */
		ssize_t filled = tls_fill(t);
		if (filled <= 0) return filled;
	}
	const bool ok = t->records ? read_records(t, buffer, &got) : read_session(t, buffer, length, &got);
	if (!ok || t->ended) ERR_clear_error();
	w->in_at = w->in_end = 0;
	const bool holds = ok && got && !t->ended;
	enum iob_result result =
		holds ? IOB_DONE : tls_flush_output(t, IO_LAST); /* an answer to a key update, or an alert */
	if (!ok || result == IOB_FAILED) {
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
	if (!w || !(w->method = method_new()) || !(w->methods = record_methods_new())) {
		tls_worker_free(w);
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
	record_methods_free(w->methods);
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
	tls_set_memory(t, TLS_HANDSHAKE_MEMORY);
	return t;
}

void tls_forget_secrets(struct tls *t) {
	if (t->secrets) OPENSSL_cleanse(t->secrets, sizeof *t->secrets);
	free(t->secrets);
	t->secrets = NULL;
}

void tls_release(struct tls *t) {
	if (!t) return;
	if (t->worker->owner == t) t->worker->owner = NULL;
	tls_set_memory(t, 0);
	SSL_free(t->ssl);
	records_free(t->records);
	tls_forget_secrets(t);
	free(t->part);
	free(t->unsent);
	free(t);
}
