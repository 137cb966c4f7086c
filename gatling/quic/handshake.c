/* handshake.c - see endpoint.h: the TLS of a connection (RFC 9001), by OpenSSL. */
#include <openssl/err.h>

#include "gatling/quic/endpoint.h"

bool quic_local_address(const SSL *ssl, struct peer *address) {
	ngtcp2_crypto_conn_ref *ref = SSL_get_app_data(ssl);
	*address = peer_of(ngtcp2_conn_get_path(ref->get_conn(ref))->local.addr);
	return true;
}

bool quic_handshake_begin(struct quic_connection *c) {
	const struct tls_handshaking *h = &c->quic->handshaking;
	c->ssl = SSL_new(certificates_context(h->certificates));
	if (c->ssl && ngtcp2_crypto_ossl_ctx_new(&c->tls, c->ssl) == 0 && tls_set_handshaking(c->ssl, h) &&
		SSL_set_app_data(c->ssl, &c->ref) && SSL_set_min_proto_version(c->ssl, TLS1_3_VERSION) &&
		SSL_set_num_tickets(c->ssl, QUIC_TICKETS) && ngtcp2_crypto_ossl_configure_server_session(c->ssl) == 0) {
		SSL_set_accept_state(c->ssl);
		ngtcp2_conn_set_tls_native_handle(c->conn, c->tls);
		return true;
	}
	ERR_clear_error();
	return false;
}

/* Key updates need no SSL (measured with ngtcp2 1.22 and OpenSSL 3.5), which takes 21 KB. */
void quic_handshake_end(struct quic_connection *c) {
	if (!c->ssl) return;
	SSL_set_app_data(c->ssl, NULL);
	ngtcp2_crypto_ossl_ctx_set_ssl(c->tls, NULL);
	SSL_free(c->ssl);
	c->ssl = NULL;
}
