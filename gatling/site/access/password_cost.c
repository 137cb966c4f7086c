/* password_cost.c - see password_cost.h. The cost of a hash is linear in a number of steps, which each kind writes in a
 * way of its own (crypt(5)). */
#include "gatling/site/access/password_cost.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/site/access/password_hash.h"

enum {
	MEASUREMENTS = 3,  /* the shortest counts: others were disturbed */
	ALL_THE_SAME = 1,  /* steps of a kind that has no parameter */
	SCRYPT_BLOCK = 128 /* bytes for each N and r */
};

#define UNKNOWN 0.0 /* steps of a setting that is not understood, or takes too much memory */

/* Returns the number in an alphabet of crypt(3), "./0-9A-Za-z", of `digits` digits, the lowest first; or -1. */
static long number64(const char *text, unsigned digits) {
	static const char alphabet[] = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	long number = 0;
	for (unsigned i = 0; i < digits; i++) {
		const char *at = text[i] ? strchr(alphabet, text[i]) : NULL;
		if (!at) return -1;
		number |= (at - alphabet) << 6 * i;
	}
	return number;
}

static double constant(const char *setting) {
	(void)setting;
	return ALL_THE_SAME;
}

/* Returns the number between a text and a '$', `none` if the setting does not begin with the text, or UNKNOWN if what
 * follows it is not such a number. */
static double number_behind(const char *setting, const char *text, double none) {
	enum { DIGITS_MAX = 10 };
	const size_t length = strlen(text);
	if (strncmp(setting, text, length) != 0) return none;
	const size_t digits = strspn(setting + length, "0123456789");
	if (!digits || digits > DIGITS_MAX || setting[length + digits] != '$') return UNKNOWN;
	return (double)strtoull(setting + length, NULL, 10);
}

static double bcrypt(const char *s) { /* $2b$COST$ */
	enum { LEAST = 4, MOST = 31 };
	if (strlen(s) < strlen("$2b$00$") || s[3] != '$') return UNKNOWN;
	const double cost = number_behind(s + 3, "$", UNKNOWN);
	return cost >= LEAST && cost <= MOST ? (double)(1UL << (unsigned)cost) : UNKNOWN;
}

static double sha(const char *s) { /* $5$rounds=N$ */
	enum { USUAL = 5000, LEAST = 1000 };
	const double rounds = number_behind(s + 3, "rounds=", USUAL);
	return rounds <= UNKNOWN || rounds >= LEAST ? rounds : LEAST;
}

static double sun(const char *s) { /* $md5,rounds=N$ or $md5$rounds=N$; $md5$SALT$ */
	enum { ALWAYS = 4096 };
	const char *at = s + strlen("$md5");
	if (*at != ',' && *at != '$') return UNKNOWN;
	const bool has_rounds = strncmp(at + 1, "rounds=", strlen("rounds=")) == 0;
	if (!has_rounds) return *at == '$' ? ALWAYS : UNKNOWN;
	const double rounds = number_behind(at + 1, "rounds=", UNKNOWN);
	return rounds > UNKNOWN ? ALWAYS + rounds : UNKNOWN;
}

static double sha1(const char *s) { return number_behind(s, "$sha1$", UNKNOWN); }

static double bsdi(const char *s) { /* _NNNN */
	const long rounds = number64(s + 1, 4);
	return rounds > 0 ? (double)rounds : UNKNOWN;
}

/* Returns the steps for the parameters of scrypt, log2(N), r and p. */
static double memory_hard(long log2_n, long r, long p) {
	enum { LOG2_N_MAX = 30 };
	if (log2_n < 1 || log2_n > LOG2_N_MAX || r < 1 || p < 1) return UNKNOWN;
	const double blocks = (double)(1UL << log2_n) * (double)r;
	const double memory = SCRYPT_BLOCK * (blocks + (double)r * (double)p);
	return memory <= PASSWORD_MEMORY_MAX ? blocks * (double)p : UNKNOWN;
}

static double scrypt(const char *s) { /* $7$NRRRRRPPPPP */
	if (strlen(s) < strlen("$7$NRRRRRPPPPP")) return UNKNOWN;
	return memory_hard(number64(s + 3, 1), number64(s + 4, 5), number64(s + 9, 5));
}

/* $y$jNR$, with further parameters if they are not those that crypt_gensalt(3) writes; $gy$ likewise. */
static double yescrypt(const char *s) {
	enum { ONE_DIGIT = 48 };
	s = strchr(s + 1, '$') + 1;
	if (s[0] != 'j' || strcspn(s, "$") != strlen("jNR")) return UNKNOWN;
	const long n = number64(s + 1, 1), r = number64(s + 2, 1);
	return n < 0 || n >= ONE_DIGIT || r < 0 || r >= ONE_DIGIT ? UNKNOWN : memory_hard(n + 1, r + 1, 1);
}

/* Caches make small settings of a memory-hard kind cheaper than their steps say. */
static const struct hash_kind {
	const char *start, *cheap; /* of settings; a setting to measure */
	double (*steps)(const char *setting);
	double margin;
	bool grows; /* with the length of the password */
} kinds[] = {{"$2", "$2b$06$abcdefghijklmnopqrstuu", bcrypt, 1, false},
			 {"$5$", "$5$rounds=10000$saltsalt", sha, 1, true},
			 {"$6$", "$6$rounds=10000$saltsalt", sha, 1, true},
			 {"$1$", "$1$saltsalt", constant, 1, true},
			 {"$apr1$", "$apr1$saltsalt$", constant, 1, true},
			 {"{SHA}", "{SHA}", constant, 1, true},
			 {"$md5", "$md5,rounds=4096$saltsalt$", sun, 1, true},
			 {"$sha1$", "$sha1$10000$saltsalt$", sha1, 1, true},
			 {"$3$", "$3$$", constant, 1, false},
			 {"$7$", "$7$AU..../....saltsalt", scrypt, 1.5, false},
			 {"$y$", "$y$jAT$saltsaltsaltsalt$", yescrypt, 1.5, false},
			 {"$gy$", "$gy$jAT$saltsaltsaltsalt$", yescrypt, 1.5, false},
			 {"_", "_J9..salt", bsdi, 1, false},
			 {"", "ab", constant, 1, false}}; /* DES; what begins with '$' is not known */

enum { KINDS = sizeof kinds / sizeof *kinds };
_Static_assert(KINDS <= sizeof(unsigned) * CHAR_BIT, "each kind has a bit");

/* The nanoseconds of the cheap setting of each kind; 0: it has not been measured. */
static _Atomic uint64_t measured[KINDS];
static const uint64_t unusable = UINT64_MAX; /* the system does not know the kind, or cannot measure it */

/* Returns the index of the kind of a setting, or KINDS. */
static unsigned kind_of(const char *setting) {
	unsigned i = 0;
	while (i < KINDS && strncmp(setting, kinds[i].start, strlen(kinds[i].start)) != 0) i++;
	return i == KINDS - 1 && setting[0] == '$' ? KINDS : i;
}

/* Returns how many times as long a password of that many bytes takes, at most. Each step hashes it twice at most,
 * besides a salt and the hash before. */
static double growth(const struct hash_kind *kind, size_t length) {
	enum { OTHERS = 80 };
	if (!kind->grows || length <= PASSWORD_USUAL) return 1;
	return (2.0 * (double)length + OTHERS) / (2.0 * PASSWORD_USUAL + OTHERS);
}

enum password_cost password_cost(const char *setting, size_t length, unsigned *unmeasured) {
	if (setting[0] == '*' || setting[0] == '!') return PASSWORD_AFFORDABLE; /* no password is right */
	const unsigned i = kind_of(setting);
	if (i == KINDS) return PASSWORD_DEAR;
	const struct hash_kind *kind = &kinds[i];
	const double steps = kind->steps(setting);
	const uint64_t ns = atomic_load(&measured[i]);
	if (steps <= UNKNOWN || ns == unusable) return PASSWORD_DEAR;
	if (!ns) {
		*unmeasured |= 1U << i;
		return PASSWORD_UNMEASURED;
	}
	const double cost = (double)ns * steps / kind->steps(kind->cheap) * kind->margin * growth(kind, length);
	return cost <= PASSWORD_CPU_MS * 1e6 ? PASSWORD_AFFORDABLE : PASSWORD_DEAR;
}

bool password_cost_takes_memory(const char *setting) {
	const unsigned i = kind_of(setting);
	return i < KINDS && (kinds[i].steps == scrypt || kinds[i].steps == yescrypt);
}

bool password_cost_measured(unsigned wanted) {
	for (unsigned i = 0; i < KINDS; i++)
		if (wanted >> i & 1 && !atomic_load(&measured[i])) return false;
	return true;
}

/* Reads the processor time of this thread in nanoseconds. Returns false if the system does not tell it. */
static bool read_cpu(uint64_t *ns) {
	struct timespec t;
	if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == -1) return false;
	*ns = (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
	return true;
}

/* Returns the nanoseconds of the cheap setting of a kind, 0 without memory, or `unusable`. */
static uint64_t measure(const struct hash_kind *kind) {
	char password[PASSWORD_USUAL + 1], out[PLATFORM_CRYPT_ROOM];
	uint64_t least = unusable;
	memset(password, 'x', PASSWORD_USUAL);
	password[PASSWORD_USUAL] = '\0';
	for (int i = 0; i < MEASUREMENTS; i++) {
		uint64_t begun, ended;
		if (!read_cpu(&begun)) return unusable;
		if (!password_hash(password, kind->cheap, out)) return errno == ENOMEM ? 0 : unusable;
		if (!read_cpu(&ended)) return unusable;
		const uint64_t ns = ended - begun + 1;
		if (ns < least) least = ns;
	}
	return least;
}

void password_cost_measure(unsigned wanted) {
	for (unsigned i = 0; i < KINDS; i++) {
		uint64_t none = 0; /* a verdict stays, whoever measured it first */
		if (wanted >> i & 1 && !atomic_load(&measured[i]))
			(void)atomic_compare_exchange_strong(&measured[i], &none, measure(&kinds[i]));
	}
}
