/* tls_context.h - the TLS settings: the intermediate profile of Mozilla's recommendations
 * (https://wiki.mozilla.org/Security/Server_Side_TLS), TLS 1.2 and 1.3, only AEAD and forward secrecy. There is no
 * renegotiation, no compression and no early data: a request that may be replayed is not worth the round trip. */
#ifndef GATLING_TLS_TLS_CONTEXT_H
#define GATLING_TLS_TLS_CONTEXT_H

#include <openssl/ssl.h>
#include <stdbool.h>

struct certificates; /* certificates.h */

/* The application data (SSL_set_app_data()) that each connection must have. */
struct tls_handshaking {
	const struct certificates *certificates; /* the current set */

	bool strict_sni; /* refuse server names that no certificate covers */
};

/* Returns a context without a certificate. client_ca: the authorities that must have signed the certificates of clients
 * (PEM); NULL: clients need none. Returns NULL with a reason in OpenSSL's error queue. */
SSL_CTX *tls_context_new(const char *client_ca);

#endif
