/* subjects.c - see subjects.h. */
#include "gatling/acme/subjects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/acme/explain.h"
#include "gatling/base/notice.h"
#include "gatling/base/peer.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/http/host.h"

enum { DAY_S = 24 * 60 * 60, RENEWAL_PART = 3, SPREAD_PART = 12 };

/* --- names --- */

bool subject_possible(const char *name) {
	/* RFC 6761, RFC 6762, RFC 7686, RFC 8375, and what ICANN reserves for private use */
	static const char *const private[] = {".localhost", ".local",     ".internal", ".invalid",
										  ".onion",     ".home.arpa", ".test",     ".example"};
	/* ports, IPv6 addresses, and labels that are not of letters, digits and inner hyphens (RFC 1123, section 2.1) */
	static const char *const never[] = {":", "_", ".-", "-."};
	const struct slice whole = slice_of(name);
	const char *last = strrchr(name, '.');
	if (!last || !host_normal(whole) || *name == '-' || slice_ends(whole, SLICE("-"))) return false;
	if (text_is_digit(last[1])) return false; /* an IPv4 address */
	for (size_t i = 0; i < sizeof never / sizeof *never; i++)
		if (strstr(name, never[i])) return false;
	for (size_t i = 0; i < sizeof private / sizeof *private; i++)
		if (slice_ends(whole, slice_of(private[i]))) return false;
	return true;
}

bool subject_is_address(const char *name) {
	char text[PEER_MAX];
	struct peer address;
	if (!peer_parse(slice_of(name), &address) || !peer_is_public(&address)) return false;
	return slice_equal(slice_of(name), (struct slice){.at = text, .length = peer_format(text, &address)});
}

/* Writes the name for which the directory of a site gets a certificate. Returns false if there is none. */
static bool name_of(const char *directory, const struct acme_options *o, char name[STORE_NAME_MAX]) {
	const size_t length = strlen(directory);
	const bool brackets = *directory == '[' && directory[length - 1] == ']';
	if (length >= STORE_NAME_MAX) return false;
	snprintf(name, STORE_NAME_MAX, "%.*s", (int)(length - 2 * brackets), directory + brackets);
	if (!brackets && subject_possible(name)) return true;
	return o->profile && subject_is_address(name) && brackets == (strchr(name, ':') != NULL);
}

/* --- the list --- */

static struct subject *find_subject(const struct subjects *s, const char *name) {
	struct subject *found;
	TAILQ_FOREACH(found, &s->all, all) if (strcmp(found->name, name) == 0) return found;
	return NULL;
}

/* Adds a name that is not there yet. listed: it is to have a certificate; otherwise it just has one. */
static void add(struct subjects *s, const struct acme_options *o, const char *name, bool listed, int64_t now_s) {
	struct subject *found = find_subject(s, name);
	if (!found && s->count == ACME_SUBJECTS_MAX) {
		if (!s->told)
			notice_line(LEVEL_WARNING, "certificates: there are more than %d names: %s is left out", ACME_SUBJECTS_MAX,
						name);
		s->told = true;
		return;
	}
	if (!found) {
		if (!(found = calloc(1, sizeof *found))) return; /* the next scan finds it again */
		snprintf(found->name, sizeof found->name, "%s", name);
		TAILQ_INSERT_TAIL(&s->all, found, all);
		s->count++;
		subject_schedule(found, o, now_s);
		subject_recall(found, o->directory);
	}
	found->listed |= listed;
}

static void drop_gone(struct subjects *s, const char *directory, int64_t now_s) {
	for (struct subject *at = TAILQ_FIRST(&s->all), *next; at; at = next) {
		next = TAILQ_NEXT(at, all);
		if (at->listed || at->attempt || !subject_is_due(at, now_s)) continue;
		store_remove(directory, at->name);
		s->gone(s->owner, at->name);
		TAILQ_REMOVE(&s->all, at, all);
		s->count--;
		free(at);
	}
}

/* Adds the names that have certificates, whose directories may be gone since. */
static void add_old(struct subjects *s, const struct acme_options *o, int64_t now_s) {
	char path[PATH_MAX];
	store_path(path, o->directory, "live");
	DIR *live = opendir(path);
	for (const struct dirent *entry; live && (entry = readdir(live));)
		if (subject_possible(entry->d_name) || subject_is_address(entry->d_name))
			add(s, o, entry->d_name, false, now_s);
	if (live) closedir(live);
}

/* Returns whether a name in the root is a directory as the server sees it, which may change its root to there. */
static bool is_site(int root, const char *name, const struct acme_options *o) {
	const int flags = PLATFORM_PATH | O_DIRECTORY | O_CLOEXEC;
	int fd = o->beneath       ? platform_open_beneath(root, name, flags)
			 : geteuid() == 0 ? platform_open_in_root(root, name, flags)
							  : openat(root, name, flags);
	if (fd != -1) close(fd);
	return fd != -1;
}

int subjects_scan(struct subjects *s, const struct acme_options *o, const char *root, int64_t now_s) {
	struct subject *at;
	char name[STORE_NAME_MAX];
	DIR *directory = o->sites ? opendir(root) : NULL;
	if (o->sites && !directory) return -1;
	if (!s->scanned) add_old(s, o, now_s);
	s->scanned = true;
	TAILQ_FOREACH(at, &s->all, all) at->listed = false;
	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		if (name_of(entry->d_name, o, name) && is_site(dirfd(directory), entry->d_name, o))
			add(s, o, name, true, now_s);
	if (directory) closedir(directory);
	for (unsigned i = 0; i < o->names; i++) add(s, o, o->name[i], true, now_s);
	drop_gone(s, o->directory, now_s);
	return 0;
}

/* --- when --- */

/* Returns a number of seconds below `limit`. */
static int64_t random_s(int64_t limit) {
	uint32_t number = 0;
	if (RAND_bytes((unsigned char *)&number, sizeof number) != 1) number = 0;
	return limit > 0 ? number % limit : 0;
}

int64_t subject_renewal_s(const struct store_dates *dates) {
	return dates->to - (dates->to - dates->from) / RENEWAL_PART;
}

void subject_schedule(struct subject *s, const struct acme_options *o, int64_t now_s) {
	struct store_dates dates;
	s->due_s = now_s;
	s->ask_s = now_s + random_s(ACME_ASK_S);
	s->failures = 0;
	s->told = false;
	s->good = store_dates_in_use(o->directory, s->name, &dates) == 0 && dates.to > now_s;
	if (!s->good || !store_is_of(o->directory, s->name, o->url)) return;
	const int64_t spread_s = (dates.to - dates.from) / SPREAD_PART;
	s->due_s = subject_renewal_s(&dates) - random_s(spread_s < DAY_S ? spread_s : DAY_S);
}

void subject_recall(struct subject *s, const char *directory) {
	struct store_result last;
	if (store_recall(directory, s->name, &last) == -1 || !last.failures) return;
	s->failures = last.failures;
	s->good = false;
	if (s->due_s < last.due_s) s->due_s = last.due_s;
}

void subject_put_off(struct subject *s, int64_t now_s) {
	int64_t pause_s = ACME_PAUSE_S;
	for (unsigned i = 0; i < s->failures && pause_s < ACME_PAUSE_MAX_S; i++) pause_s *= 2;
	if (pause_s > ACME_PAUSE_MAX_S) pause_s = ACME_PAUSE_MAX_S;
	s->failures++;
	s->good = s->told = false;
	s->due_s = now_s + pause_s;
}

void subjects_hurry(struct subjects *s, int64_t now_s) {
	struct subject *at;
	TAILQ_FOREACH(at, &s->all, all) {
		if (at->failures && at->due_s > now_s) at->due_s = now_s;
		at->ask_s = now_s;
	}
}

bool subject_is_due(const struct subject *s, int64_t now_s) {
	return s->due_s <= now_s || (!s->good && s->due_s - EXPLAIN_LIMITED_MAX_S > now_s);
}

struct subject *subjects_due(const struct subjects *s, int64_t now_s) {
	struct subject *at, *first = NULL;
	TAILQ_FOREACH(at, &s->all, all) {
		if (at->attempt || !at->listed) continue;
		if (subject_is_due(at, now_s) && (!first || at->failures < first->failures)) first = at;
	}
	return first;
}

struct subject *subjects_to_ask(const struct subjects *s, int64_t now_s) {
	struct subject *at;
	TAILQ_FOREACH(at, &s->all, all) {
		if (at->attempt || !at->listed || !at->good || subject_is_due(at, now_s)) continue;
		/* a later time was set while the clock was ahead */
		if (at->ask_s <= now_s || at->ask_s - ACME_ASK_S > now_s) return at;
	}
	return NULL;
}
