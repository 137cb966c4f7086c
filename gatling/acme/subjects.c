/* subjects.c - see subjects.h. */
#include "gatling/acme/subjects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gatling/base/notice.h"
#include "gatling/base/text.h"

enum { DAY_S = 24 * 60 * 60, RENEWAL_PART = 3, SPREAD_PART = 12 };

/* --- names --- */

/* Returns whether each label is of lower-case letters, digits and hyphens. */
static bool is_host_name(struct slice name) {
	if (!name.length || name.length >= STORE_NAME_MAX || name.at[name.length - 1] == '.') return false;
	for (size_t i = 0; i < name.length; i++) {
		const char c = name.at[i], before = i ? name.at[i - 1] : '.',
				   after = i + 1 < name.length ? name.at[i + 1] : '.';
		if (c == '-' && before != '.' && after != '.') continue;
		if (c == '.' && before != '.') continue;
		if (!(c >= 'a' && c <= 'z') && !text_is_digit(c)) return false;
	}
	return true;
}

bool subject_possible(const char *name) {
	/* RFC 6761, RFC 6762, RFC 7686, RFC 8375, and what ICANN keeps for private use */
	static const char *const private[] = {".localhost", ".local",     ".internal", ".invalid",
										  ".onion",     ".home.arpa", ".test",     ".example"};
	const char *last = strrchr(name, '.');
	if (!last || !is_host_name(slice_of(name))) return false;
	if (text_is_digit(last[1])) return false; /* an address */
	for (size_t i = 0; i < sizeof private / sizeof *private; i++)
		if (slice_ends(slice_of(name), slice_of(private[i]))) return false;
	return true;
}

/* --- the list --- */

static struct subject *find(const struct subjects *s, const char *name) {
	struct subject *found;
	TAILQ_FOREACH(found, &s->all, all) if (strcmp(found->name, name) == 0) return found;
	return NULL;
}

static void add(struct subjects *s, const struct acme_options *o, const char *name, int64_t now_s) {
	struct subject *found = find(s, name);
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
		subject_schedule(found, o->directory, now_s);
	}
	found->listed = true;
}

static void drop_gone(struct subjects *s, const char *directory, int64_t now_s) {
	for (struct subject *at = TAILQ_FIRST(&s->all), *next; at; at = next) {
		next = TAILQ_NEXT(at, all);
		if (at->listed || at->attempt || at->due_s > now_s) continue;
		store_remove(directory, at->name);
		s->gone(s->owner, at->name);
		TAILQ_REMOVE(&s->all, at, all);
		s->count--;
		free(at);
	}
}

int subjects_scan(struct subjects *s, const struct acme_options *o, const char *root, int64_t now_s) {
	struct subject *at;
	struct stat st;
	DIR *directory = o->sites ? opendir(root) : NULL;
	if (o->sites && !directory) return -1;
	TAILQ_FOREACH(at, &s->all, all) at->listed = false;
	for (const struct dirent *entry; directory && (entry = readdir(directory));)
		if (subject_possible(entry->d_name) && fstatat(dirfd(directory), entry->d_name, &st, 0) == 0 &&
			S_ISDIR(st.st_mode))
			add(s, o, entry->d_name, now_s);
	if (directory) closedir(directory);
	for (unsigned i = 0; i < o->names; i++) add(s, o, o->name[i], now_s);
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

void subject_schedule(struct subject *s, const char *directory, int64_t now_s) {
	char path[PATH_MAX], file[2 * STORE_NAME_MAX];
	struct store_dates dates;
	snprintf(file, sizeof file, "%s/fullchain.pem", s->name);
	store_path(path, directory, "live", file);
	s->due_s = now_s;
	s->failures = 0;
	s->told = false;
	s->good = store_dates(path, &dates) == 0 && dates.to > now_s;
	if (!s->good) return;
	const int64_t lifetime_s = dates.to - dates.from, spread_s = lifetime_s / SPREAD_PART;
	s->due_s = dates.to - lifetime_s / RENEWAL_PART - random_s(spread_s < DAY_S ? spread_s : DAY_S);
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
	TAILQ_FOREACH(at, &s->all, all) if (at->failures && at->due_s > now_s) at->due_s = now_s;
}

struct subject *subjects_due(const struct subjects *s, int64_t now_s, int64_t *next_s) {
	struct subject *at, *first = NULL;
	TAILQ_FOREACH(at, &s->all, all) {
		if (at->attempt || !at->listed) continue;
		if (at->due_s < *next_s) *next_s = at->due_s;
		if (at->due_s <= now_s && (!first || at->failures < first->failures)) first = at;
	}
	return first;
}
