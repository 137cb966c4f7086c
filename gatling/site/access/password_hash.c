/* password_hash.c - see password_hash.h. $apr1$ is the $1$ of crypt(5) with another word at its start, which becomes
 * part of the hash. */
#include "gatling/site/access/password_hash.h"

#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#include "gatling/base/slice.h"

enum { MD5 = 16, SHA1 = 20, SALT_MAX = 8, ROUNDS = 1000 };

static const struct slice apr1 = SLICE("$apr1$"), sha = SLICE("{SHA}");

bool password_hash_is_apaches(struct slice text) {
	enum { APR1_HASH = 22, SHA_HASH = 28 };
	if (slice_starts(text, sha)) return text.length == sha.length + SHA_HASH;
	if (!slice_starts(text, apr1)) return false;
	const struct slice rest = slice_rest(text, apr1.length);
	return slice_until(rest, '$') + 1 + APR1_HASH == rest.length && slice_until(rest, '$') <= SALT_MAX;
}

static bool add(EVP_MD_CTX *c, struct slice s) { return EVP_DigestUpdate(c, s.at, s.length); }

/* Hashes a first time: digest, MD5 bytes, becomes the hash that the rounds begin with. */
static bool begin(EVP_MD_CTX *c, struct slice password, struct slice salt, unsigned char *digest) {
	const struct slice whole = {.at = (const char *)digest, .length = MD5};
	bool done = EVP_DigestInit_ex(c, EVP_md5(), NULL) && add(c, password) && add(c, salt) && add(c, password) &&
				EVP_DigestFinal_ex(c, digest, NULL) && EVP_DigestInit_ex(c, EVP_md5(), NULL) && add(c, password) &&
				add(c, apr1) && add(c, salt);
	for (size_t left = password.length; done && left; left -= left < MD5 ? left : MD5)
		done = add(c, slice_first(whole, left < MD5 ? left : MD5));
	for (size_t bits = password.length; done && bits; bits >>= 1)
		done = add(c, bits & 1 ? (struct slice){.at = "", .length = 1} : slice_first(password, 1));
	return done && EVP_DigestFinal_ex(c, digest, NULL);
}

static bool hash_once_more(EVP_MD_CTX *c, unsigned round, struct slice password, struct slice salt,
						   unsigned char *digest) {
	const struct slice whole = {.at = (const char *)digest, .length = MD5};
	return EVP_DigestInit_ex(c, EVP_md5(), NULL) && add(c, round % 2 ? password : whole) &&
		   (round % 3 == 0 || add(c, salt)) && (round % 7 == 0 || add(c, password)) &&
		   add(c, round % 2 ? whole : password) && EVP_DigestFinal_ex(c, digest, NULL);
}

/* Writes a number in the alphabet of crypt(3), with that many digits, the lowest first. Returns the end. */
static char *put_digits(char *at, unsigned number, unsigned digits) {
	static const char alphabet[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	for (; digits--; number >>= 6) *at++ = alphabet[number & 63];
	return at;
}

static bool hash_apr1(struct slice password, struct slice setting, char *out) {
	struct slice salt = slice_rest(setting, apr1.length);
	unsigned char digest[MD5];
	EVP_MD_CTX *c = EVP_MD_CTX_new();
	salt.length = slice_until(salt, '$');
	if (salt.length > SALT_MAX) salt.length = SALT_MAX;
	bool done = c && begin(c, password, salt, digest);
	for (unsigned i = 0; done && i < ROUNDS; i++) done = hash_once_more(c, i, password, salt, digest);
	EVP_MD_CTX_free(c);
	if (!done) return false;
	char *at = TEXT_JOIN(out, apr1, salt, SLICE("$"));
	for (unsigned i = 0; i < 5; i++) {
		const unsigned last = i == 4 ? 5 : i + 12;
		at = put_digits(at, (unsigned)digest[i] << 16 | (unsigned)digest[i + 6] << 8 | digest[last], 4);
	}
	*put_digits(at, digest[11], 2) = '\0';
	OPENSSL_cleanse(digest, sizeof digest);
	return true;
}

static bool hash_sha(struct slice password, char *out) {
	unsigned char digest[SHA1];
	if (!EVP_Digest(password.at, password.length, digest, NULL, EVP_sha1(), NULL)) return false;
	(void)EVP_EncodeBlock((unsigned char *)text_copy(out, sha), digest, SHA1);
	OPENSSL_cleanse(digest, sizeof digest);
	return true;
}

bool password_hash(const char *password, const char *setting, char *out) {
	const struct slice text = slice_of(setting);
	errno = ENOMEM; /* OpenSSL does not say why it fails */
	if (slice_starts(text, apr1)) return hash_apr1(slice_of(password), text, out);
	if (slice_starts(text, sha)) return hash_sha(slice_of(password), out);
	return platform_crypt(password, setting, out);
}
