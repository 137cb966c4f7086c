/* tickets.h - the keys that session tickets are sealed with (RFC 5077, RFC 8446, section 4.6.1): one set for all
 * workers and all certificates, so that a client may come back to any of them; never written anywhere. Thread-safe. */
#ifndef GATLING_TLS_TICKETS_H
#define GATLING_TLS_TICKETS_H

#include <openssl/ssl.h>
#include <stdint.h>

enum {
	TICKET_PERIOD_S = 12 * 60 * 60, /* after which new tickets get a new key; the old one opens tickets for as long */
	TICKET_NAME = 16,               /* bytes */
	TICKET_KEY = 32
};

struct ticket_key {
	int64_t made_s; /* 0: none */
	unsigned char name[TICKET_NAME], cipher[TICKET_KEY], mac[TICKET_KEY];
};

/* The key to seal with at a time of the monotonic clock, which is made if it is not there: 0, or -1 without randomness.
 */
int tickets_seal_key(int64_t now_s, struct ticket_key *key);

/* The key of that name, if it may still open: 1; 2 if the ticket should be sealed anew; 0: there is none. */
int tickets_open_key(int64_t now_s, const unsigned char *name, struct ticket_key *key);

/* For SSL_CTX_set_tlsext_ticket_key_evp_cb(). */
int tickets_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
					 int sealing);

#endif
