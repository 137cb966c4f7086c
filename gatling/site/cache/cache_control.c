/* cache_control.c - see cache_control.h. It is long because names carry no mark that tells a hash from a word: each
 * build tool has its own form, and people give names that look like several of them. */
#include "gatling/site/cache/cache_control.h"

#include "gatling/base/slice.h"

enum {
	TOOLS_HASH_MIN = 8, /* characters, in a directory of a tool */
	DISTINCT_MIN = 4,   /* different digits of a hexadecimal hash: "ff0000ff" is a colour */
	WORD_MIN = 4,       /* letters of a word */
	PART_MIN = 3,       /* letters of an abbreviation */
	CONSONANTS_MAX = 3  /* in a row in a word */
};

enum hash_alphabet { HEX, BASE32, BASE64URL };

/* The files that tools write: scripts and styles with their maps; fonts; pictures; sound, films, JSON and others. */
enum file_kind { CODE = 1, FONT = 2, PICTURE = 4, OTHER = 8, ANY = CODE | FONT | PICTURE | OTHER };

/* The hashes that build tools append to a stem and a separator, by default. Some do not count for pictures, and short
 * ones not for sound, films and data, since people give such names to those. */
static const struct hash_form {
	struct slice separator;
	size_t length;
	enum hash_alphabet alphabet;
	unsigned kinds;
	unsigned runs; /* of BASE64URL: the least number, see struct shape */
} forms[] = {
	{SLICE("-"), 8, BASE64URL, CODE | FONT | PICTURE, 3}, /* Vite, Rollup */
	{SLICE("."), 8, BASE64URL, CODE, 4},                  /* VitePress */
	{SLICE("-"), 8, BASE32, CODE | FONT | PICTURE, 0},    /* esbuild, Angular */
	{SLICE("."), 8, HEX, CODE | FONT | PICTURE, 0},       /* Parcel, Create React App, MkDocs */
	{SLICE("-"), 8, HEX, CODE | FONT, 0},                 /* Vite before 5, Rails with Propshaft */
	{SLICE("."), 12, HEX, CODE | FONT, 0},                /* Django */
	{SLICE("."), 16, HEX, ANY, 0},                        /* Next, Angular before 17 */
	{SLICE("-"), 16, HEX, CODE | FONT, 0},                /* Next */
	{SLICE("_hu_"), 16, HEX, PICTURE, 0},                 /* Hugo */
	{SLICE("."), 20, HEX, ANY, 0},                        /* webpack */
	{SLICE("-"), 20, HEX, CODE | FONT, 0},                /* webpack, Gatsby */
	{SLICE("."), 32, HEX, ANY, 0},                        /* Hugo with md5 */
	{SLICE("-"), 32, HEX, CODE | FONT, 0},                /* Phoenix, Ember */
	{SLICE("."), 64, HEX, ANY, 0},                        /* Hugo */
	{SLICE("-"), 64, HEX, ANY, 0},                        /* Rails with Sprockets */
	{SLICE("."), 96, HEX, ANY, 0},                        /* Hugo with sha384 */
	{SLICE("."), 128, HEX, ANY, 0},                       /* Hugo with sha512 */
};

/* --- characters --- */

static bool is_small(char c) { return c >= 'a' && c <= 'z'; }
static bool is_capital(char c) { return c >= 'A' && c <= 'Z'; }

static bool all_of(struct slice s, enum hash_alphabet alphabet) {
	static const char *const digits[] = {[HEX] = "0123456789abcdef",
										 [BASE32] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
										 [BASE64URL] =
											 "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"};
	for (size_t i = 0; i < s.length; i++)
		if (!s.at[i] || !strchr(digits[alphabet], s.at[i])) return false;
	return true;
}

/* --- telling hashes from names --- */

/* A hash of 8 characters has many short runs of letters or digits: "BxK2a9fQ" has seven, but "Release2" two, and
 * "OsStrExt" and "HTML2PDF", names in scripts, three. */
struct shape {
	unsigned runs, capitals, smalls;
	unsigned parts;   /* runs of three letters or more */
	unsigned changes; /* between a letter and a digit */
	bool separators;
	bool readable;   /* letters could be a word, or an abbreviation of one or two */
	bool word;       /* a run is long and has a vowel */
	bool number;     /* a run has three digits */
	bool dense;      /* three runs have no separator between them */
	bool beyond_hex; /* there are other letters than A to F */
};

static bool is_vowel(char c) { return strchr("aeiouyAEIOUY", c); }

/* Returns the length of the run at the front: digits, a separator, a capital with small letters, or capitals. */
static size_t run_length(struct slice s) {
	const char *at = s.at;
	size_t n = 1;
	if (text_is_digit(at[0]))
		while (n < s.length && text_is_digit(at[n])) n++;
	else if (is_small(at[0]) || (is_capital(at[0]) && n < s.length && is_small(at[1])))
		while (n < s.length && is_small(at[n])) n++;
	else if (is_capital(at[0]))
		while (n < s.length && is_capital(at[n]) && !(n + 1 < s.length && is_small(at[n + 1]))) n++;
	return n;
}

static struct shape shape(struct slice s) {
	struct shape shape = {.readable = true};
	bool after_digit = false, after_letter = false;
	for (unsigned together = 0; s.length;) {
		struct slice r = slice_first(s, run_length(s));
		bool letters = is_small(r.at[0]) || is_capital(r.at[0]), separator = !letters && !text_is_digit(r.at[0]);
		unsigned vowels = 0, consonants = 0; /* consonants: in a row */
		for (size_t i = 0; i < r.length; i++) {
			vowels += is_vowel(r.at[i]);
			consonants = is_vowel(r.at[i]) ? 0 : consonants + 1;
			shape.readable &= !letters || consonants <= CONSONANTS_MAX;
			shape.capitals += is_capital(r.at[i]);
			shape.smalls += is_small(r.at[i]);
			shape.beyond_hex |= letters && !strchr("ABCDEFabcdef", r.at[i]);
		}
		shape.parts += letters && r.length >= PART_MIN;
		shape.changes += letters ? after_digit : !separator && after_letter;
		shape.separators |= separator;
		shape.runs += !separator;
		shape.number |= text_is_digit(r.at[0]) && r.length >= 3;
		shape.word |= letters && r.length >= WORD_MIN && vowels;
		together = separator ? 0 : together + 1;
		shape.dense |= together == 3;
		after_letter = letters;
		after_digit = !letters && !separator;
		slice_drop(&s, r.length);
	}
	return shape;
}

/* --- hashes --- */

static bool is_hex_hash(struct slice s) {
	unsigned digits = 0, distinct = 0, changes = 0;
	for (size_t i = 0; i < s.length; i++) {
		digits += text_is_digit(s.at[i]);
		distinct += !memchr(s.at, s.at[i], i);
		changes += i && text_is_digit(s.at[i]) != text_is_digit(s.at[i - 1]);
	}
	bool word = changes == 1 && !text_is_digit(s.at[0]) && s.length - digits >= WORD_MIN; /* "decade80" */
	return digits && digits < s.length && distinct >= DISTINCT_MIN && !word;
}

static bool is_base32_hash(const struct shape *h, unsigned kind) {
	if (kind == PICTURE) return h->runs > 2 && !h->word && !h->number;
	return h->runs > 3 || (h->runs > 2 && h->parts < 2) || !h->readable;
}

static bool is_base64url_hash(const struct shape *h, unsigned kind) {
	if (kind == PICTURE) return h->runs > 4 && !h->word && h->capitals > 1 && h->smalls > 1;
	if (!h->capitals || !h->smalls || h->number || (kind == FONT && h->word)) return false;
	return h->dense || (h->separators && !h->readable);
}

static bool is_hash(struct slice s, const struct hash_form *form, unsigned kind) {
	if (!all_of(s, form->alphabet)) return false;
	if (form->alphabet == HEX) return is_hex_hash(s);
	struct shape h = shape(s);
	if (!h.beyond_hex || h.runs < form->runs) return false;
	return form->alphabet == BASE32 ? is_base32_hash(&h, kind) : is_base64url_hash(&h, kind);
}

/* --- names --- */

/* Cuts s off before its last c. Returns false if there is none, or nothing before it. */
static bool cut(struct slice *s, char c) {
	size_t n = s->length;
	while (n && s->at[n - 1] != c) n--;
	if (n < 2) return false;
	s->length = n - 1;
	return true;
}

/* Beginnings of media types and of paths; an empty one ends each list. */
static const struct slice code_types[] = {SLICE("text/javascript"), SLICE("text/css"), {0}};
static const struct slice font_types[] = {SLICE("font/"), SLICE("application/vnd.ms-fontobject"), {0}};
static const struct slice other_types[] = {SLICE("audio/"),
										   SLICE("video/"),
										   SLICE("application/wasm"),
										   SLICE("application/json"),
										   SLICE("application/manifest+json"),
										   {0}};
static const struct slice reserved[] = {SLICE("_next/static/"), SLICE("_app/immutable/"), SLICE("_astro/"), {0}};

static bool starts_with_any(struct slice text, const struct slice *list) {
	while (list->length && !slice_starts(text, *list)) list++;
	return list->length;
}

/* Returns the kind of files of a media type, or 0 if tools do not write such files. */
static unsigned kind_of(struct slice type) {
	if (starts_with_any(type, code_types)) return CODE;
	if (starts_with_any(type, font_types)) return FONT;
	if (slice_starts(type, SLICE("image/"))) return PICTURE;
	return starts_with_any(type, other_types) ? OTHER : 0;
}

/* Returns whether the file is below a directory in which tools name files by their content. */
static bool is_reserved(struct slice path) {
	for (size_t i = 0; i < path.length; i++)
		if ((!i || path.at[i - 1] == '/') && starts_with_any(slice_rest(path, i), reserved)) return true;
	return false;
}

/* Returns the part between the dots of a name that looks like a hash in a directory where people put no files: other
 * names there are those of the tool, or whole words. Returns an absent slice if there is none. */
static struct slice tools_hash(struct slice name) {
	for (size_t n; name.length; slice_drop(&name, n < name.length ? n + 1 : n)) {
		n = slice_until(name, '.');
		const struct slice part = slice_first(name, n);
		if (n < TOOLS_HASH_MIN || !all_of(part, BASE64URL)) continue;
		const struct shape h = shape(part);
		if (h.changes > 1 || (h.dense && !h.word)) return part;
	}
	return (struct slice){0};
}

struct slice cache_control_hash(struct slice path, const char *type) {
	static const struct slice map = SLICE(".map"), infix[] = {SLICE(".min"), SLICE(".chunk"), SLICE(".bundle")};
	size_t directory = path.length;
	while (directory && path.at[directory - 1] != '/') directory--;
	struct slice name = slice_rest(path, directory);
	bool maps = slice_ends(name, map);
	unsigned kind = maps ? CODE : kind_of(slice_of(type));
	if (!kind) return (struct slice){0};
	const struct slice of_tool = is_reserved(path) ? tools_hash(name) : (struct slice){0};
	if (of_tool.at) return of_tool;
	if (maps) name.length -= map.length;
	if (!cut(&name, '.')) return (struct slice){0};
	for (size_t i = 0; i < sizeof infix / sizeof *infix; i++)
		if (slice_ends(name, infix[i])) name.length -= infix[i].length;
	for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
		const struct hash_form *f = &forms[i];
		if (name.length <= f->separator.length + f->length || !(f->kinds & kind)) continue;
		struct slice stem = slice_first(name, name.length - f->length), hash = slice_rest(name, stem.length);
		if (slice_ends(stem, f->separator) && is_hash(hash, f, kind)) return hash;
	}
	return (struct slice){0};
}

bool cache_control_is_hashed(struct slice path, const char *type) { return cache_control_hash(path, type).at; }

bool cache_control_is_page(const char *type) {
	struct slice t = slice_of(type);
	return slice_starts(t, SLICE("text/html")) || slice_starts(t, SLICE("application/xhtml"));
}

const struct slice cache_control_offered = SLICE("private, max-age=2592000"); /* 30 days */

struct slice cache_control_default(struct slice path, const char *type, bool restricted, bool is_substitute) {
	if (is_substitute || !cache_control_is_hashed(path, type))
		return restricted ? SLICE("private, no-cache") : SLICE("no-cache");
	return restricted ? SLICE("private, max-age=31536000, immutable") : SLICE("public, max-age=31536000, immutable");
}
