/* records.c - see records.h. All section numbers are those of RFC 8446. */
#include "gatling/tls/records.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdlib.h>

enum {
	HEADER = 5,
	TAG = 16,
	NONCE = 12,
	KEY_MAX = 32,
	KEY_UPDATE = 24,       /* a type of handshake message */
	KEY_UPDATE_LENGTH = 5, /* type, length (3 bytes), whether the same is requested */
	ALERT_LENGTH = 2,      /* level, description */
	WARNING = 1,
	FATAL = 2,
	LABEL_ROOM =
		2 + 1 + 18 + 1 + 1 /* HkdfLabel (section 7.1) with "tls13 traffic upd", and the counter of HKDF-Expand */
};

/* The suites of tls_context.c (appendix B.4). */
static const struct suite {
	uint16_t id;
	uint8_t key, secret; /* lengths in bytes; a secret is as long as what the hash returns */
	const char *cipher, *hash;
} suites[] = {
	{0x1301, 16, 32, "AES-128-GCM", "SHA256"},
	{0x1302, 32, 48, "AES-256-GCM", "SHA384"},
	{0x1303, 32, 32, "ChaCha20-Poly1305", "SHA256"},
};
enum { SUITES = sizeof suites / sizeof *suites };

struct record_methods {
	EVP_CIPHER *cipher[SUITES];
	EVP_MAC_CTX *hmac[SUITES];
};

struct direction {
	EVP_CIPHER_CTX *cipher;
	struct traffic traffic;
	unsigned char iv[NONCE];
};

struct records {
	struct record_methods *methods;
	uint8_t suite; /* an index */
	uint8_t fault; /* an alert */
	uint8_t empty; /* records without content */
	uint8_t part_length;
	unsigned char part[KEY_UPDATE_LENGTH]; /* the beginning of a message that is in several records */
	struct direction in, out;
};

/* --- keys --- */

static EVP_MAC_CTX *hmac_new(EVP_MAC *method, const char *hash) {
	OSSL_PARAM parameters[] = {
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, (char *)hash, 0),
		OSSL_PARAM_construct_end(),
	};
	EVP_MAC_CTX *c = EVP_MAC_CTX_new(method);
	if (c && EVP_MAC_CTX_set_params(c, parameters)) return c;
	EVP_MAC_CTX_free(c);
	return NULL;
}

struct record_methods *record_methods_new(void) {
	struct record_methods *m = calloc(1, sizeof *m);
	EVP_MAC *hmac = EVP_MAC_fetch(NULL, OSSL_MAC_NAME_HMAC, NULL);
	bool ok = m && hmac;
	for (int i = 0; ok && i < SUITES; i++)
		ok = (m->cipher[i] = EVP_CIPHER_fetch(NULL, suites[i].cipher, NULL)) &&
			 (m->hmac[i] = hmac_new(hmac, suites[i].hash));
	EVP_MAC_free(hmac);
	if (ok) return m;
	record_methods_free(m);
	return NULL;
}

void record_methods_free(struct record_methods *m) {
	if (!m) return;
	for (int i = 0; i < SUITES; i++) {
		EVP_CIPHER_free(m->cipher[i]);
		EVP_MAC_CTX_free(m->hmac[i]);
	}
	free(m);
}

/* HKDF-Expand-Label(secret, label, "", length) of section 7.1, for no more bytes than the hash returns, so that one
 * step of HKDF-Expand is enough (RFC 5869, section 2.3). */
static bool expand(const struct records *r, const unsigned char *secret, struct slice label, void *to, size_t length) {
	EVP_MAC_CTX *hmac = r->methods->hmac[r->suite];
	unsigned char text[LABEL_ROOM] = {0, (unsigned char)length, (unsigned char)label.length}, all[TRAFFIC_SECRET_MAX];
	size_t end = 3, got;
	memcpy(text + end, label.at, label.length);
	end += label.length;
	text[end++] = 0; /* the length of the context */
	text[end++] = 1;
	if (!EVP_MAC_init(hmac, secret, suites[r->suite].secret, NULL) || !EVP_MAC_update(hmac, text, end) ||
		!EVP_MAC_final(hmac, all, &got, sizeof all) || got < length)
		return false;
	memcpy(to, all, length);
	OPENSSL_cleanse(all, sizeof all);
	return true;
}

/* Computes key and IV from the secret (section 7.3). */
static bool use_secret(const struct records *r, struct direction *d, bool encrypts) {
	unsigned char key[KEY_MAX];
	bool ok = expand(r, d->traffic.secret, SLICE("tls13 key"), key, suites[r->suite].key) &&
			  expand(r, d->traffic.secret, SLICE("tls13 iv"), d->iv, NONCE) &&
			  EVP_CipherInit_ex(d->cipher, r->methods->cipher[r->suite], NULL, key, NULL, encrypts);
	OPENSSL_cleanse(key, sizeof key);
	return ok;
}

/* Goes on to the next secret (section 7.2). */
static bool renew(const struct records *r, struct direction *d, bool encrypts) {
	struct traffic next = {.records = 0};
	bool ok = expand(r, d->traffic.secret, SLICE("tls13 traffic upd"), next.secret, suites[r->suite].secret);
	if (ok) d->traffic = next;
	OPENSSL_cleanse(&next, sizeof next);
	return ok && use_secret(r, d, encrypts);
}

struct records *records_new(struct record_methods *methods, const SSL_CIPHER *suite, const struct traffic *client,
							const struct traffic *server) {
	uint8_t i = 0;
	while (i < SUITES && suites[i].id != SSL_CIPHER_get_protocol_id(suite)) i++;
	struct records *r = i < SUITES ? calloc(1, sizeof *r) : NULL;
	if (!r) return NULL;
	*r = (struct records){.methods = methods,
						  .suite = i,
						  .in = {.cipher = EVP_CIPHER_CTX_new(), .traffic = *client},
						  .out = {.cipher = EVP_CIPHER_CTX_new(), .traffic = *server}};
	if (r->in.cipher && r->out.cipher && use_secret(r, &r->in, false) && use_secret(r, &r->out, true)) return r;
	records_free(r);
	return NULL;
}

void records_free(struct records *r) {
	if (!r) return;
	EVP_CIPHER_CTX_free(r->in.cipher);
	EVP_CIPHER_CTX_free(r->out.cipher);
	OPENSSL_cleanse(r, sizeof *r);
	free(r);
}

/* Prepares the cipher for the next record, which has this header. */
static bool begin(struct direction *d, const unsigned char *header) {
	unsigned char nonce[NONCE]; /* section 5.3 */
	int n;
	memcpy(nonce, d->iv, sizeof nonce);
	for (int i = 0; i < 8; i++) nonce[NONCE - 1 - i] ^= (unsigned char)(d->traffic.records >> 8 * i);
	d->traffic.records++;
	return EVP_CipherInit_ex(d->cipher, NULL, NULL, NULL, nonce, -1) &&
		   EVP_CipherUpdate(d->cipher, NULL, &n, header, HEADER);
}

/* --- sending --- */

static size_t seal(struct records *r, enum record_type type, const void *content, size_t length, unsigned char *to) {
	EVP_CIPHER_CTX *cipher = r->out.cipher;
	const size_t rest = length + 1 + TAG;
	const unsigned char last = (unsigned char)type;
	const unsigned char header[HEADER] = {RECORD_APPLICATION_DATA, 3, 3, (unsigned char)(rest >> 8),
										  (unsigned char)rest};
	int n;
	memcpy(to, header, HEADER);
	to += HEADER;
	if (!begin(&r->out, header) || !EVP_EncryptUpdate(cipher, to, &n, content, (int)length) ||
		!EVP_EncryptUpdate(cipher, to + length, &n, &last, 1) || !EVP_EncryptFinal_ex(cipher, to + length + 1, &n) ||
		!EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_GET_TAG, TAG, to + length + 1))
		return 0;
	return length + RECORD_OVERHEAD;
}

size_t records_renew(struct records *r, char *to) {
	const char update[KEY_UPDATE_LENGTH] = {KEY_UPDATE, 0, 0, 1, 0};
	const size_t n = seal(r, RECORD_HANDSHAKE, update, sizeof update, (unsigned char *)to);
	return n && renew(r, &r->out, true) ? n : 0;
}

size_t records_seal(struct records *r, enum record_type type, const void *content, size_t length, char *to) {
	const bool worn = r->out.traffic.records >= RECORDS_OF_A_KEY;
	const size_t before = worn ? records_renew(r, to) : 0;
	if (worn && !before) return 0;
	const size_t n = seal(r, type, content, length, (unsigned char *)to + before);
	return n ? before + n : 0;
}

size_t records_alert(struct records *r, enum record_alert alert, char *to) {
	const char message[ALERT_LENGTH] = {alert == ALERT_CLOSE_NOTIFY ? WARNING : FATAL, (char)alert};
	return records_seal(r, RECORD_ALERT, message, sizeof message, to);
}

/* --- receiving --- */

enum record_alert records_fault(const struct records *r) { return r->fault; }

static enum record_result fail(struct records *r, enum record_alert alert) {
	r->fault = (uint8_t)alert;
	return RECORD_FAILED;
}

/* Section 6. */
static enum record_result take_alert(struct records *r, const unsigned char *message, size_t length) {
	if (length != ALERT_LENGTH) return fail(r, ALERT_DECODE_ERROR);
	if (message[1] == ALERT_CLOSE_NOTIFY) return RECORD_END;
	if (message[1] == ALERT_USER_CANCELED) return RECORD_CONTENT; /* a close_notify follows */
	return fail(r, ALERT_CLOSE_NOTIFY);
}

/* A message, or a part of one. Clients send none but key updates (section 4.6), and nothing behind one in its record
 * (section 5.1). */
static enum record_result take_message(struct records *r, const unsigned char *at, size_t length) {
	if (r->part_length + length > KEY_UPDATE_LENGTH) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	memcpy(r->part + r->part_length, at, length);
	r->part_length += (uint8_t)length;
	if (r->part[0] != KEY_UPDATE) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	if (r->part_length < KEY_UPDATE_LENGTH) return RECORD_CONTENT;
	r->part_length = r->empty = 0;
	if (memcmp(r->part + 1, "\0\0\1", 3) != 0) return fail(r, ALERT_DECODE_ERROR);
	if (r->part[4] > 1) return fail(r, ALERT_ILLEGAL_PARAMETER);
	if (!renew(r, &r->in, false)) return fail(r, ALERT_INTERNAL_ERROR);
	return r->part[4] ? RECORD_ASKED : RECORD_RENEWED;
}

/* Decrypts the record after its header. Returns the length of its plaintext, without padding, or 0. */
static size_t decrypt(struct records *r, const unsigned char *record, size_t length, unsigned char *to) {
	EVP_CIPHER_CTX *cipher = r->in.cipher;
	size_t end = length - HEADER - TAG;
	int n;
	r->fault = ALERT_BAD_RECORD_MAC;
	if (!begin(&r->in, record) ||
		!EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, TAG, (void *)(record + length - TAG)) ||
		!EVP_DecryptUpdate(cipher, to, &n, record + HEADER, (int)end) || !EVP_DecryptFinal_ex(cipher, to + n, &n))
		return 0;
	r->fault = ALERT_RECORD_OVERFLOW;
	if (end > RECORD_CONTENT_MAX + 1) return 0;
	r->fault = ALERT_UNEXPECTED_MESSAGE;
	while (end && !to[end - 1]) end--; /* section 5.4 */
	return end;
}

enum record_result records_open(struct records *r, struct slice *input, char *to, size_t *length) {
	const unsigned char *record = (const unsigned char *)input->at;
	unsigned char *content = (unsigned char *)to;
	*length = 0;
	if (input->length < HEADER) return RECORD_PART;
	const size_t all = HEADER + ((size_t)record[3] << 8 | record[4]);
	if (record[0] != RECORD_APPLICATION_DATA) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	if (all > RECORD_MAX) return fail(r, ALERT_RECORD_OVERFLOW);
	if (all < RECORD_OVERHEAD) return fail(r, ALERT_BAD_RECORD_MAC);
	if (input->length < all) return RECORD_PART;
	size_t end = decrypt(r, record, all, content);
	slice_drop(input, all);
	if (!end) return RECORD_FAILED;
	const unsigned char type = content[--end];
	if (type != RECORD_APPLICATION_DATA && !end) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	if (r->part_length && type != RECORD_HANDSHAKE) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	if (type == RECORD_APPLICATION_DATA && end) {
		r->empty = 0;
		*length = end;
		return RECORD_CONTENT;
	}
	if (++r->empty > RECORDS_EMPTY_MAX) return fail(r, ALERT_UNEXPECTED_MESSAGE);
	if (type == RECORD_ALERT) return take_alert(r, content, end);
	if (type == RECORD_HANDSHAKE) return take_message(r, content, end);
	return type == RECORD_APPLICATION_DATA ? RECORD_CONTENT : fail(r, ALERT_UNEXPECTED_MESSAGE);
}
