/* tickets.h - the keys that encrypt session tickets (RFC 5077; RFC 8446, section 4.6.1). All workers and certificates
 * share them, so that a client may return to any of them. They are kept only in memory. Thread-safe. */
#ifndef GATLING_TLS_TICKETS_H
#define GATLING_TLS_TICKETS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TICKET_PERIOD_S = 12 * 60 * 60, /* time after which new tickets get a new key; the old one decrypts for as long */
	TICKET_NAME = 16,               /* bytes */
	TICKET_KEY = 32
};

struct ticket_key {
	int64_t made_s; /* when it was made; 0: there is none */
	unsigned char name[TICKET_NAME], cipher[TICKET_KEY], mac[TICKET_KEY];
};

/* Writes the key for new tickets to *key, after making one if necessary. now_s: by the monotonic clock. Returns 0, or
 * -1 without random bytes. */
int tickets_seal_key(int64_t now_s, struct ticket_key *key);

/* Writes the key of that name to *key, if it may still decrypt. Returns 1, 2 if the client should get a new ticket, or
 * 0 if there is no such key. */
int tickets_open_key(int64_t now_s, const unsigned char *name, struct ticket_key *key);

/* Prepares what tickets_callback() needs, in the thread that makes the context. Returns false without memory. */
bool tickets_fetch(void);

/* For SSL_CTX_set_tlsext_ticket_key_evp_cb(). */
int tickets_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
					 int sealing);

#endif
