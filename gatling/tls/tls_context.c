/* tls_context.c - see tls_context.h. */
#include "gatling/tls/tls_context.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <string.h>
#include <time.h>

#include "gatling/tls/certificates.h"
#include "gatling/tls/tickets.h"
#include "gatling/tls/tls.h"

/* The DHE suites of some versions of the profile are left out: they cost the server more than its client
 * (CVE-2002-20001), and clients that have them have ECDHE, too. */
static const char ciphers[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
							  "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
							  "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";
static const char suites[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";

/* The first list that OpenSSL knows is used; version 3.5 has the first group, which no later quantum computer breaks.
 * Of those that a client has sent a key share for, the first one is chosen. */
static const char *const groups[] = {"X25519MLKEM768:X25519:P-256:P-384", "X25519:P-256:P-384"};

static const unsigned char session_context[] =
	"gatling"; /* the same everywhere: a ticket is valid with every certificate */

/* Bytes of supported_groups (RFC 8446, section 4.2.7) with 127 groups; there are about 60. */
enum { GROUPS_MAX = 2 + 127 * 2 };

/* Refuses a ClientHello with more groups. OpenSSL searches all of them for each key share, which takes 70 ms for the
 * 100 million pairs that fit into 64 KB. */
static int check_hello(SSL *ssl, int *alert, void *unused) {
	const unsigned char *list;
	size_t length;
	(void)unused;
	if (!SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_supported_groups, &list, &length) || length <= GROUPS_MAX)
		return SSL_CLIENT_HELLO_SUCCESS;
	*alert = SSL_AD_ILLEGAL_PARAMETER;
	return SSL_CLIENT_HELLO_ERROR;
}

/* Chooses the first of the server's protocols that the client has (RFC 7301). A client without any of them gets an
 * alert. */
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_length, const unsigned char *in,
						   unsigned in_length, void *unused) {
	static const unsigned char over_tcp[] = "\x02h2\x08http/1.1", over_quic[] = "\x02h3";
	const bool quic = tls_handshaking_of(ssl)->quic;
	(void)unused;
	int result = SSL_select_next_proto((unsigned char **)out, out_length, quic ? over_quic : over_tcp,
									   quic ? sizeof over_quic - 1 : sizeof over_tcp - 1, in, in_length);
	return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* Requires certificates of clients. */
static bool require_certificates(SSL_CTX *context, STACK_OF(X509) * authorities) {
	bool ok = true;
	for (int i = 0; ok && i < sk_X509_num(authorities); i++) {
		X509 *ca = sk_X509_value(authorities, i);
		ok = SSL_CTX_add_client_CA(context, ca) && X509_STORE_add_cert(SSL_CTX_get_cert_store(context), ca);
	}
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
	return ok;
}

static bool set_groups(SSL_CTX *context) {
	for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
		if (SSL_CTX_set1_groups_list(context, groups[i])) return true;
		ERR_clear_error();
	}
	return false;
}

/* Fetches methods that would otherwise first be fetched during a handshake. OpenSSL creates all methods of a kind
 * with the first one, and those that it has no memory for then are missing for ever. */
static bool fetch_methods(void) {
	EVP_KDF *kdf = EVP_KDF_fetch(NULL, OSSL_KDF_NAME_TLS1_3_KDF, NULL);
	EVP_MAC *mac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
	EVP_KEM *kem = EVP_KEM_fetch(NULL, "RSA", NULL); /* OpenSSL 3.5 takes others of the kind */
	bool fetched = kdf && mac && kem && tickets_fetch();
	EVP_KDF_free(kdf);
	EVP_MAC_free(mac);
	EVP_KEM_free(kem);
	return fetched;
}

SSL_CTX *tls_context_new(STACK_OF(X509) * authorities) {
	SSL_CTX *c = SSL_CTX_new(TLS_server_method());
	if (!c) return NULL;
	if (!tls_reserve_handshaking() || !fetch_methods() || !SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION) ||
		!SSL_CTX_set_cipher_list(c, ciphers) || !SSL_CTX_set_ciphersuites(c, suites) || !set_groups(c) ||
		!SSL_CTX_set_session_id_context(c, session_context, sizeof session_context - 1) ||
		!SSL_CTX_set_tlsext_ticket_key_evp_cb(c, tickets_callback) ||
		(authorities && !require_certificates(c, authorities))) {
		SSL_CTX_free(c);
		return NULL;
	}
	/* all ciphers are strong: a client without AES instructions, which prefers ChaCha20, gets that */
	SSL_CTX_set_options(c, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_PRIORITIZE_CHACHA | SSL_OP_NO_RENEGOTIATION |
							   SSL_OP_NO_COMPRESSION | SSL_OP_ENABLE_KTLS);
	SSL_CTX_set_mode(c, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF); /* the clients keep tickets */
	(void)SSL_CTX_set_num_tickets(c, 1);                   /* a resumption brings the next one */
	SSL_CTX_set_timeout(c, TICKET_PERIOD_S);
	SSL_CTX_set_keylog_callback(c, tls_note_secret);
	SSL_CTX_set_client_hello_cb(c, check_hello, NULL);
	SSL_CTX_set_alpn_select_cb(c, choose_protocol, NULL);
	SSL_CTX_set_tlsext_servername_callback(c, certificates_choose);
	return c;
}
