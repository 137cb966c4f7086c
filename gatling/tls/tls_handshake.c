/* tls_handshake.c - see tls.h: handshakes. After one of TLS 1.3 a connection goes on without its SSL, which holds up to
 * 28 KB, unless the kernel may encrypt records. */
#include <errno.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/tls/tls_state.h"

/* --- the end of a handshake --- */

/* Reads the secret at the end of a line "LABEL CLIENT_RANDOM SECRET", if it has this label. */
static bool read_secret(const char *line, struct slice label, struct traffic *traffic) {
	size_t length;
	return slice_starts(slice_of(line), label) &&
		   OPENSSL_hexstr2buf_ex(traffic->secret, sizeof traffic->secret, &length, strrchr(line, ' ') + 1, '\0') == 1;
}

void tls_note_secret(const SSL *ssl, const char *line) {
	if (tls_handshaking_of(ssl)->quic) return;
	struct tls *t = BIO_get_data(SSL_get_rbio(ssl));
	if (t->worker->kernel || (!t->secrets && !(t->secrets = calloc(1, sizeof *t->secrets)))) return;
	t->secrets->has_server |= read_secret(line, SLICE("SERVER_TRAFFIC_SECRET_0 "), &t->secrets->server);
	t->secrets->has_client |= read_secret(line, SLICE("CLIENT_TRAFFIC_SECRET_0 "), &t->secrets->client);
}

/* Returns how many records there are in the output from `at` on. */
static uint64_t count_records(const struct tls_worker *w, size_t at) {
	enum { HEADER = 5 };
	uint64_t n = 0;
	for (; at + HEADER <= w->sealed_length; n++)
		at += HEADER + ((size_t)(unsigned char)w->sealed[at + 3] << 8 | (unsigned char)w->sealed[at + 4]);
	return n;
}

/* Returns whether the client wants smaller records than others (RFC 6066, section 4). */
static bool limits_records(const SSL *ssl) {
	const uint8_t mode = SSL_SESSION_get_max_fragment_length(SSL_get_session(ssl));
	return mode >= TLSEXT_max_fragment_length_512 && mode <= TLSEXT_max_fragment_length_4096; /* 3.5 has others */
}

/* Puts records in the place of the SSL, if it has no input left and all of its output after the handshake, that is
 * tickets, is in the buffer from `tickets` on. Without memory it stays. */
static void give_way(struct tls *t, size_t tickets) {
	struct tls_secrets *s = t->secrets;
	if (SSL_version(t->ssl) != TLS1_3_VERSION || !s || !s->has_client || !s->has_server || t->unsent ||
		SSL_has_pending(t->ssl) || limits_records(t->ssl))
		return;
	s->server.records = count_records(t->worker, tickets);
	t->records = records_new(t->worker->methods, SSL_get_current_cipher(t->ssl), &s->client, &s->server);
	if (t->records) {
		SSL_free(t->ssl);
		t->ssl = NULL;
	} else ERR_clear_error();
}

/* Counts the key updates of the client, of which one SSL_read_ex() may handle many. OpenSSL calls it at each step. */
static void note_step(const SSL *ssl, int where, int result) {
	(void)result;
	if (where == SSL_CB_ACCEPT_LOOP && SSL_get_state(ssl) == TLS_ST_SR_KEY_UPDATE)
		tls_count_renewal(BIO_get_data(SSL_get_rbio(ssl)));
}

/* Notes what was negotiated, and settles how records are made. Returns false without memory. */
static bool complete(struct tls *t, size_t tickets) {
	const unsigned char *name;
	unsigned length;
	SSL_get0_alpn_selected(t->ssl, &name, &length);
	t->http2 = length == 2 && memcmp(name, "h2", 2) == 0;
	t->resumed = SSL_session_reused(t->ssl);
	t->kernel = BIO_get_ktls_send(SSL_get_wbio(t->ssl));
	if (!t->kernel && t->worker->kernel) { /* the kernel does not support this cipher: encrypt here, send through io/ */
		BIO *bio = SSL_get_rbio(t->ssl);
		if (!BIO_up_ref(bio)) return false;
		SSL_set0_wbio(t->ssl, bio);
	}
	if (!t->kernel && !t->worker->kernel) give_way(t, tickets);
	tls_forget_secrets(t);
	if (t->ssl) SSL_set_info_callback(t->ssl, note_step);
	const uint32_t library = OpenSSL_version_num() < OPENSSL_3_2 ? TLS_SESSION_MEMORY : TLS_SESSION_MEMORY_3_2;
	tls_set_memory(t, t->records ? RECORDS_MEMORY : library);
	return true;
}

/* --- handshakes --- */

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
	tls_claim(t);
	ssize_t n = blocked ? 0 : tls_fill(t);
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
		tls_set_memory(t, TLS_HANDSHAKE_MEMORY + message_memory(w->in, w->in_end));
	const size_t output = w->sealed_length;
	int done = SSL_accept(t->ssl);
	t->answered |= w->sealed_length > 0;
	int error = done == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, done);
	ERR_clear_error();
	enum iob_result result = done == 1 ? IOB_DONE : tls_flush_output(t, IO_LAST); /* an alert, too */
	if (result == IOB_FAILED || t->failed ||
		(done != 1 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE))
		return TLS_FAILED;
	t->waits = error == SSL_ERROR_WANT_WRITE;
	if (t->waits && io_eagain_write(t->loop, t->fd) == -1) return TLS_FAILED;
	if (done != 1) return TLS_AGAIN;
	return complete(t, output) ? TLS_DONE : TLS_FAILED;
}
