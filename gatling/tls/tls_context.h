/* tls_context.h - the TLS settings: the intermediate profile of Mozilla's recommendations
 * (https://wiki.mozilla.org/Security/Server_Side_TLS), TLS 1.2 and 1.3, only AEAD and forward secrecy. There is no
 * renegotiation, no compression and no early data: a request that may be replayed is not worth the round trip. */
#ifndef GATLING_TLS_TLS_CONTEXT_H
#define GATLING_TLS_TLS_CONTEXT_H

#include <openssl/ssl.h>

/* Returns a context without a certificate, which certificates_choose() gives to each connection, or NULL if memory runs
 * out. authorities: one of them must have signed the certificate of a client; NULL: clients need none.
 *
 * A process makes one context, when it starts: OpenSSL leaves out parts that it has no memory for, such as a signature
 * algorithm, without an error. */
SSL_CTX *tls_context_new(STACK_OF(X509) * authorities);

#endif
