/* freshness.c - see freshness.h. */
#include "gatling/freshness.h"

#include <sys/types.h>

enum {
	DISTINCT_MIN = 4,  /* different digits of a hexadecimal hash: "ff0000ff" is a colour */
	WORD_MIN = 4,      /* letters of what may be a word */
	CONSONANTS_MAX = 2 /* that follow each other in what reads as one */
};

enum alphabet { HEX, BASE32, BASE64URL };

/* The hashes that build tools put behind a stem and a separator, of these tools with their defaults. What anybody may
 * call a picture is one only for scripts and styles. */
static const struct form {
	struct slice separator;
	size_t length;
	enum alphabet alphabet;
	bool code;     /* of scripts and styles alone */
	unsigned runs; /* see struct shape; at least so many: "OsStrExt" has three */
} forms[] = {
	{SLICE("-"), 8, BASE64URL, false, 3}, /* Vite, Rollup */
	{SLICE("."), 8, BASE64URL, true, 4},  /* VitePress */
	{SLICE("-"), 8, BASE32, false, 0},    /* esbuild, Angular */
	{SLICE("."), 8, HEX, false, 0},       /* Parcel, Create React App, MkDocs */
	{SLICE("-"), 8, HEX, true, 0},        /* Vite before 5 */
	{SLICE("."), 12, HEX, false, 0},      /* Django */
	{SLICE("."), 16, HEX, false, 0},      /* Next, Angular before 17 */
	{SLICE("-"), 16, HEX, true, 0},       /* Next */
	{SLICE("."), 20, HEX, false, 0},      /* webpack */
	{SLICE("-"), 20, HEX, true, 0},       /* webpack, Gatsby */
	{SLICE("."), 32, HEX, false, 0},      /* Hugo with md5, Phoenix */
	{SLICE("_hu_"), 16, HEX, false, 0},   /* Hugo, of pictures */
	{SLICE("."), 64, HEX, false, 0},      /* Hugo */
	{SLICE("-"), 64, HEX, false, 0},      /* Rails */
	{SLICE("."), 96, HEX, false, 0},      /* Hugo with sha384, and */
	{SLICE("."), 128, HEX, false, 0},     /* sha512 */
};

/* All that is below these the tools have named by its content. */
static const struct slice reserved[] = {SLICE("_next/static/"), SLICE("_app/immutable/"), SLICE("_astro/")};

/* --- characters --- */

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_small(char c) { return c >= 'a' && c <= 'z'; }
static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

static bool is_of(char c, enum alphabet alphabet) {
	switch (alphabet) {
	case HEX: return is_digit(c) || (c >= 'a' && c <= 'f');
	case BASE32: return is_capital(c) || (c >= '2' && c <= '7');
	case BASE64URL: break;
	}
	return is_digit(c) || is_small(c) || is_capital(c) || c == '-' || c == '_';
}

static bool all_of(struct slice s, enum alphabet alphabet) {
	for (size_t i = 0; i < s.length; i++)
		if (!is_of(s.at[i], alphabet)) return false;
	return true;
}

/* --- what tells a hash from a name that somebody has chosen --- */

/* A hash of 8 characters is of many short runs of letters or digits: "BxK2a9fQ" of five, "Release2" of two. */
struct shape {
	unsigned runs;
	bool capitals, smalls, separators;
	bool reads;      /* each run of letters does */
	bool word;       /* one of them is long, and has a vowel */
	bool beyond_hex; /* it has other letters than A to F */
};

static bool is_vowel(char c) { return strchr("aeiouyAEIOUY", c); }

static bool has_vowel(struct slice letters) {
	for (size_t i = 0; i < letters.length; i++)
		if (is_vowel(letters.at[i])) return true;
	return false;
}

/* Whether letters could be a word, or two be short for one. */
static bool reads(struct slice letters) {
	unsigned consonants = 0;
	if (letters.length <= 2) return true;
	for (size_t i = 0; i < letters.length && consonants <= CONSONANTS_MAX; i++)
		consonants = is_vowel(letters.at[i]) ? 0 : consonants + 1;
	return consonants <= CONSONANTS_MAX;
}

/* The length of the run at the front: digits; a separator; a capital with the small letters behind it; capitals. */
static size_t run(struct slice s) {
	const char *at = s.at;
	size_t n = 1;
	if (is_digit(at[0]))
		while (n < s.length && is_digit(at[n])) n++;
	else if (is_small(at[0]) || (is_capital(at[0]) && n < s.length && is_small(at[1])))
		while (n < s.length && is_small(at[n])) n++;
	else if (is_capital(at[0]))
		while (n < s.length && is_capital(at[n]) && !(n + 1 < s.length && is_small(at[n + 1]))) n++;
	return n;
}

static struct shape shape(struct slice s) {
	struct shape shape = {.reads = true};
	while (s.length) {
		struct slice r = {.at = s.at, .length = run(s)};
		bool letters = is_small(r.at[0]) || is_capital(r.at[0]);
		shape.capitals |= is_capital(r.at[0]);
		shape.smalls |= letters && is_small(r.at[r.length - 1]);
		shape.separators |= !letters && !is_digit(r.at[0]);
		shape.runs += letters || is_digit(r.at[0]);
		shape.reads &= !letters || reads(r);
		shape.word |= letters && r.length >= WORD_MIN && has_vowel(r);
		for (size_t i = 0; i < r.length; i++) shape.beyond_hex |= letters && !strchr("ABCDEFabcdef", r.at[i]);
		s.at += r.length;
		s.length -= r.length;
	}
	return shape;
}

/* --- hashes --- */

static bool is_hex_hash(struct slice s) {
	unsigned digits = 0, distinct = 0;
	for (size_t i = 0; i < s.length; i++) {
		digits += is_digit(s.at[i]);
		distinct += !memchr(s.at, s.at[i], i);
	}
	return digits && digits < s.length && distinct >= DISTINCT_MIN;
}

/* code: of a script or style; in the names of pictures there is all that people write there. */
static bool is_hash(struct slice s, const struct form *form, bool code) {
	enum alphabet alphabet = form->alphabet;
	if (!all_of(s, alphabet)) return false;
	if (alphabet == HEX) return is_hex_hash(s);
	struct shape h = shape(s);
	if (!h.beyond_hex) return false;
	if (alphabet == BASE32) return h.runs > 2 || (!h.reads && (code || h.runs == 1));
	if (!h.capitals || !h.smalls || h.runs < form->runs) return false;
	return code || (!h.word && (!h.separators || h.runs > 4));
}

static bool ends_in(struct slice s, struct slice end) {
	return s.length >= end.length && memcmp(s.at + s.length - end.length, end.at, end.length) == 0;
}

/* --- names --- */

/* Cuts s off before the last c in it. false: there is none, or nothing before it. */
static bool cut(struct slice *s, char c) {
	size_t n = s->length;
	while (n && s->at[n - 1] != c) n--;
	if (n < 2) return false;
	s->length = n - 1;
	return true;
}

static bool starts_with(const char *type, const char *start) { return strncmp(type, start, strlen(start)) == 0; }

/* Whether tools write what has that media type, and is no script or style. */
static bool is_asset(const char *type) {
	return starts_with(type, "image/") || starts_with(type, "font/") || starts_with(type, "audio/") ||
		   starts_with(type, "video/") || starts_with(type, "application/wasm") ||
		   starts_with(type, "application/vnd.ms-fontobject") || starts_with(type, "application/json") ||
		   starts_with(type, "application/manifest+json");
}

static bool is_reserved(struct slice path) {
	for (size_t i = 0; i < path.length; i++)
		for (size_t k = 0; k < sizeof reserved / sizeof *reserved && (i == 0 || path.at[i - 1] == '/'); k++)
			if (path.length - i > reserved[k].length && memcmp(path.at + i, reserved[k].at, reserved[k].length) == 0)
				return true;
	return false;
}

bool freshness_hashed(struct slice path, const char *type) {
	static const struct slice map = SLICE(".map"), inner[] = {SLICE(".min"), SLICE(".chunk"), SLICE(".bundle")};
	size_t directory = path.length;
	while (directory && path.at[directory - 1] != '/') directory--;
	struct slice name = {.at = path.at + directory, .length = path.length - directory};
	bool maps = ends_in(name, map),
		 code = maps || starts_with(type, "text/javascript") || starts_with(type, "text/css");
	if (!code && !is_asset(type)) return false;
	if (is_reserved(path)) return true;
	if (maps) name.length -= map.length;
	if (!cut(&name, '.')) return false;
	for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
		if (ends_in(name, inner[i])) name.length -= inner[i].length;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const struct form *f = &forms[i];
		if (name.length <= f->separator.length + f->length || (f->code && !code)) continue;
		struct slice stem = {.at = name.at, .length = name.length - f->length};
		struct slice hash = {.at = stem.at + stem.length, .length = f->length};
		if (ends_in(stem, f->separator) && is_hash(hash, f, code)) return true;
	}
	return false;
}

bool freshness_page(const char *type) {
	return starts_with(type, "text/html") || starts_with(type, "application/xhtml");
}

struct slice freshness(struct slice path, const char *type, bool guarded, bool stands_in) {
	if (freshness_page(type)) return guarded ? SLICE("private, no-cache") : SLICE("no-cache");
	if (!stands_in && freshness_hashed(path, type))
		return guarded ? SLICE("private, max-age=31536000, immutable") : SLICE("public, max-age=31536000, immutable");
	return guarded ? SLICE("private, max-age=600") : SLICE("max-age=600");
}
