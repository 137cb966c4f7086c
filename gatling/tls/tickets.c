/* tickets.c - see tickets.h. */
#include "gatling/tls/tickets.h"

#include <openssl/core_names.h>
#include <openssl/rand.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct ticket_key current, previous; /* guarded by the mutex */
static EVP_CIPHER *cipher_method;           /* fetched once, since that takes locks */

bool tickets_fetch(void) {
	if (!cipher_method) cipher_method = EVP_CIPHER_fetch(NULL, "AES-256-CBC", NULL);
	return cipher_method;
}

/* Replaces keys that are too old. The mutex must be locked. Returns 0, or -1 without random bytes. */
static int rotate(int64_t now_s) {
	if (previous.made_s && now_s - previous.made_s >= 2 * TICKET_PERIOD_S) previous = (struct ticket_key){0};
	if (current.made_s && now_s - current.made_s < TICKET_PERIOD_S) return 0;
	struct ticket_key fresh = {.made_s = now_s};
	if (RAND_bytes(fresh.name, sizeof fresh.name) != 1 || RAND_priv_bytes(fresh.cipher, sizeof fresh.cipher) != 1 ||
		RAND_priv_bytes(fresh.mac, sizeof fresh.mac) != 1)
		return -1;
	if (current.made_s && now_s - current.made_s < 2 * TICKET_PERIOD_S) previous = current;
	current = fresh;
	return 0;
}

int tickets_seal_key(int64_t now_s, struct ticket_key *key) {
	pthread_mutex_lock(&mutex);
	int result = rotate(now_s);
	*key = current;
	pthread_mutex_unlock(&mutex);
	return result;
}

int tickets_open_key(int64_t now_s, const unsigned char *name, struct ticket_key *key) {
	pthread_mutex_lock(&mutex);
	int found = 0;
	if (rotate(now_s) == 0) {
		if (memcmp(name, current.name, TICKET_NAME) == 0) found = 1;
		else if (previous.made_s && memcmp(name, previous.name, TICKET_NAME) == 0) found = 2;
		*key = found == 2 ? previous : current;
	}
	pthread_mutex_unlock(&mutex);
	return found;
}

static int use_mac_key(EVP_MAC_CTX *mac, struct ticket_key *key) {
	OSSL_PARAM parameters[] = {
		OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, key->mac, sizeof key->mac),
		OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, "SHA256", 0),
		OSSL_PARAM_construct_end(),
	};
	return EVP_MAC_CTX_set_params(mac, parameters);
}

int tickets_callback(SSL *ssl, unsigned char *name, unsigned char *iv, EVP_CIPHER_CTX *cipher, EVP_MAC_CTX *mac,
					 int sealing) {
	struct ticket_key key;
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	int64_t now_s = (int64_t)now.tv_sec + 1; /* 0 would mean: none */
	if (sealing) {
		if (tickets_seal_key(now_s, &key) == -1) return -1;
		memcpy(name, key.name, TICKET_NAME);
		if (RAND_bytes(iv, EVP_CIPHER_get_iv_length(cipher_method)) != 1 ||
			!EVP_EncryptInit_ex(cipher, cipher_method, NULL, key.cipher, iv) || !use_mac_key(mac, &key))
			return -1;
		return 1;
	}
	int found = tickets_open_key(now_s, name, &key);
	if (!found) return 0;
	if (!EVP_DecryptInit_ex(cipher, cipher_method, NULL, key.cipher, iv) || !use_mac_key(mac, &key)) return -1;
	/* in TLS 1.3 each ticket is used once (RFC 8446, appendix C.4), so 2 sends another */
	return SSL_version(ssl) >= TLS1_3_VERSION ? 2 : found;
}
