/* records.h - the record layer of TLS 1.3 (RFC 8446, section 5) of a connection whose handshake is complete. OpenSSL
 * has the ciphers. Its own record layer holds up to 28 KB for a connection and copies each octet once more; this one
 * holds the keys. */
#ifndef GATLING_TLS_RECORDS_H
#define GATLING_TLS_RECORDS_H

#include <openssl/ssl.h>

#include "gatling/base/slice.h"

enum {
	RECORD_CONTENT_MAX = 16 * 1024,            /* bytes (section 5.1) */
	RECORD_OVERHEAD = 5 + 1 + 16,              /* header, type of the content, tag */
	RECORD_ROOM = 2 * RECORD_OVERHEAD + 5,     /* see records_seal() */
	RECORD_ALERT_ROOM = RECORD_ROOM + 2,       /* see records_alert() */
	RECORD_MAX = 5 + RECORD_CONTENT_MAX + 256, /* bytes of one that is received (section 5.2) */
	RECORDS_MEMORY = 3 * 1024,                 /* bytes that a connection holds; an estimate */
	RECORDS_EMPTY_MAX = 32,                    /* records without content, one after the other */
	TRAFFIC_SECRET_MAX = 48,                   /* bytes */
	/* Records for which a key is used. AES-GCM loses its margin of safety after 2^24.5 full ones (section 5.5). */
	RECORDS_OF_A_KEY = 1 << 24
};

/* What the connections of a thread share. */
struct record_methods;

/* Returns NULL without memory. */
struct record_methods *record_methods_new(void);
void record_methods_free(struct record_methods *methods); /* NULL is allowed */

/* The types of content and the alerts that are used here (section 4 of RFC 8446, section 6). */
enum record_type { RECORD_ALERT = 21, RECORD_HANDSHAKE = 22, RECORD_APPLICATION_DATA = 23 };
enum record_alert {
	ALERT_CLOSE_NOTIFY = 0,
	ALERT_UNEXPECTED_MESSAGE = 10,
	ALERT_BAD_RECORD_MAC = 20,
	ALERT_RECORD_OVERFLOW = 22,
	ALERT_ILLEGAL_PARAMETER = 47,
	ALERT_DECODE_ERROR = 50,
	ALERT_INTERNAL_ERROR = 80,
	ALERT_USER_CANCELED = 90
};

/* One direction: client_ or server_application_traffic_secret_N (section 7.1), and how many records were sent with it.
 */
struct traffic {
	unsigned char secret[TRAFFIC_SECRET_MAX];
	uint64_t records;
};

struct records;

/* Returns the records of a server. suite: the cipher suite of TLS 1.3. Returns NULL without memory, or for a suite that
 * is not known here. */
struct records *records_new(struct record_methods *methods, const SSL_CIPHER *suite, const struct traffic *client,
							const struct traffic *server);
void records_free(struct records *records); /* NULL is allowed */

/* Encrypts up to RECORD_CONTENT_MAX bytes into a record at `to`, behind a key update if RECORDS_OF_A_KEY were sent.
 * Returns how many bytes these are, up to RECORD_ROOM more, or 0 if OpenSSL fails. */
size_t records_seal(struct records *records, enum record_type type, const void *content, size_t length, char *to);

/* Writes a key update that asks for nothing (section 4.6.3), and uses the next key from then on. Returns as
 * records_seal(). */
size_t records_renew(struct records *records, char *to);

/* Writes an alert (section 6), which has two bytes. Returns as records_seal(). */
size_t records_alert(struct records *records, enum record_alert alert, char *to);

enum record_result {
	RECORD_PART,    /* the input ends within a record, or before one */
	RECORD_CONTENT, /* content, perhaps none */
	RECORD_RENEWED, /* the client has renewed its key, */
	RECORD_ASKED,   /* and asks for the same: call records_renew() */
	RECORD_END,     /* close_notify */
	RECORD_FAILED   /* see records_fault() */
};

/* Decrypts the first record of the input, and drops it from there. Writes its content, *length bytes, to `to`, which
 * has room for as many bytes as the record has. */
enum record_result records_open(struct records *records, struct slice *input, char *to, size_t *length);

/* Returns the alert that tells the client why records_open() failed: ALERT_CLOSE_NOTIFY if the client itself has sent
 * one of an error. */
enum record_alert records_fault(const struct records *records);

#endif
