/* freshness.c - see freshness.h. */
#include "gatling/freshness.h"

#include <sys/types.h>

enum {
	HEX_MIN = 8,         /* digits of a hash in hexadecimal; what is shorter is a version or a number */
	HEX_CHANGES = 2,     /* between digits and letters: "facade01" has 1, a hash of 8 digits seldom less than 3 */
	BUNDLER_LENGTH = 8,  /* characters of base64url (Rollup, Vite) or base32 (esbuild) */
	BUNDLER_CHANGES = 3, /* between capitals, small letters and digits: "Release2" has 2 */
	MAC_LENGTH = 12      /* of hexadecimal digits that are a whole name: an address of a network card */
};

enum kind { OTHER, DIGIT, SMALL, CAPITAL };

static enum kind kind_of(char c) {
	if (c >= '0' && c <= '9') return DIGIT;
	if (c >= 'a' && c <= 'z') return SMALL;
	return c >= 'A' && c <= 'Z' ? CAPITAL : OTHER;
}

static unsigned changes(struct slice s) {
	unsigned n = 0;
	for (size_t i = 1; i < s.length; i++) {
		enum kind before = kind_of(s.at[i - 1]), kind = kind_of(s.at[i]);
		n += kind != before && kind != OTHER && before != OTHER;
	}
	return n;
}

/* Of which kinds it has characters, as a set. */
static unsigned kinds(struct slice s) {
	unsigned set = 0;
	for (size_t i = 0; i < s.length; i++) set |= 1U << kind_of(s.at[i]);
	return set;
}

static bool is_hex(struct slice s) {
	for (size_t i = 0; i < s.length; i++) {
		enum kind kind = kind_of(s.at[i]);
		if (kind == OTHER || (kind == SMALL && s.at[i] > 'f') || (kind == CAPITAL && s.at[i] > 'F')) return false;
	}
	unsigned set = kinds(s);
	return s.length >= HEX_MIN && changes(s) >= HEX_CHANGES &&
		   (set == (1U << DIGIT | 1U << SMALL) || set == (1U << DIGIT | 1U << CAPITAL));
}

/* The last eight characters, whatever separators they hold themselves. */
static bool ends_in_bundler_hash(struct slice stem) {
	if (stem.length <= BUNDLER_LENGTH) return false;
	struct slice hash = {.at = stem.at + stem.length - BUNDLER_LENGTH, .length = BUNDLER_LENGTH};
	char before = hash.at[-1];
	unsigned set = kinds(hash);
	for (size_t i = 0; i < hash.length; i++)
		if (kind_of(hash.at[i]) == OTHER && hash.at[i] != '-' && hash.at[i] != '_') return false;
	unsigned wanted = 1U << DIGIT | 1U << CAPITAL | (set & 1U << OTHER ? 1U << SMALL : 0);
	return (before == '-' || before == '.') && (set & wanted) == wanted && changes(hash) >= BUNDLER_CHANGES;
}

/* How long s is up to the last c in it; -1: there is none. */
static ssize_t last(struct slice s, char c) {
	ssize_t n = (ssize_t)s.length - 1;
	while (n >= 0 && s.at[n] != c) n--;
	return n;
}

bool freshness_hashed(struct slice path) {
	size_t directory = (size_t)(last(path, '/') + 1);
	struct slice name = {.at = path.at + directory, .length = path.length - directory};
	if (name.length > 4 && memcmp(name.at + name.length - 4, ".map", 4) == 0) name.length -= 4;
	ssize_t dot = last(name, '.');
	if (dot <= 0) return false;
	name.length = (size_t)dot;
	if (ends_in_bundler_hash(name)) return true;
	for (size_t at = 0, end; at < name.length; at = end + 1) {
		for (end = at; end < name.length && !strchr(".-_~", name.at[end]);) end++;
		bool mac = end - at == name.length && name.length == MAC_LENGTH;
		if (!mac && is_hex((struct slice){.at = name.at + at, .length = end - at})) return true;
	}
	return false;
}

struct slice freshness(struct slice path, const char *type, bool guarded) {
	bool page = strncmp(type, "text/html", strlen("text/html")) == 0 ||
				strncmp(type, "application/xhtml", strlen("application/xhtml")) == 0;
	if (page) return guarded ? SLICE("private, no-cache") : SLICE("no-cache");
	if (freshness_hashed(path))
		return guarded ? SLICE("private, max-age=31536000, immutable") : SLICE("public, max-age=31536000, immutable");
	return guarded ? SLICE("private, max-age=600") : SLICE("max-age=600");
}
