/* tls_context.h - how gatling speaks TLS: the intermediate profile of Mozilla's recommendations
 * (https://wiki.mozilla.org/Security/Server_Side_TLS), TLS 1.2 and 1.3, AEAD and forward secrecy alone. No
 * renegotiation, no compression, no early data: a request that may be replayed is not worth the round trip. */
#ifndef GATLING_TLS_TLS_CONTEXT_H
#define GATLING_TLS_TLS_CONTEXT_H

#include <openssl/ssl.h>

/* A context without a certificate. client_ca: PEM text of the authorities that clients' certificates must come from,
 * NULL: no certificates are asked for. NULL with a text about what is wrong in OpenSSL's error queue. */
SSL_CTX *tls_context_new(const char *client_ca);

#endif
