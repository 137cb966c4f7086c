/* listings.c - see listings.h. */
#include "gatling/listings.h"

#include <errno.h>
#include <stdlib.h>

#include "gatling/listing_form.h"

struct kept {
	struct job job;
	struct listings *listings;
	unsigned references; /* the table's, the job's, the readers' */
	bool made;
	int64_t made_ms;
	int error;
	struct listing *listing;
	size_t bytes;
	enum listing_format format;
	size_t most; /* bytes of it */
	char *path;
	struct slice title; /* behind the path */
};

struct listings {
	const struct tree *tree;
	struct jobs *jobs;
	size_t bytes;
	const int64_t *now_ms;
	struct kept *kept[LISTINGS_KEPT];
};

struct reader {
	struct kept *kept;
	struct listing_reader *reader;
};

struct listings *listings_new(const struct tree *tree, struct jobs *jobs, const int64_t *now_ms) {
	struct listings *ls = calloc(1, sizeof *ls);
	if (!ls) return NULL;
	ls->tree = tree;
	ls->jobs = jobs;
	ls->now_ms = now_ms;
	return ls;
}

static void release(struct kept *k) {
	if (--k->references) return;
	if (k->listing) listing_release(k->listing);
	k->listings->bytes -= k->bytes;
	free(k->path);
	free(k);
}

void listings_free(struct listings *ls) {
	if (!ls) return;
	for (int i = 0; i < LISTINGS_KEPT; i++)
		if (ls->kept[i]) release(ls->kept[i]);
	free(ls);
}

/* --- making --- */

static void make(struct job *job, const atomic_bool *stop) {
	struct kept *k = (struct kept *)job;
	struct listing_limits limits = {.entries = LISTING_ENTRIES_MAX, .bytes = k->most};
	k->error = listing_make_within(limits, k->listings->tree, k->path, k->title, k->format, stop, &k->listing);
}

static void forget(struct kept **place) {
	struct kept *k = *place;
	*place = NULL;
	if (k) release(k);
}

static void made(struct job *job) {
	struct kept *k = (struct kept *)job;
	k->made = true;
	k->made_ms = *k->listings->now_ms;
	for (int i = 0; i < LISTINGS_KEPT && !job->ran; i++) /* who wants it begins anew */
		if (k->listings->kept[i] == k) forget(&k->listings->kept[i]);
	if (k->listing) k->bytes = listing_memory(k->listing);
	k->listings->bytes += k->bytes;
	release(k);
}

static struct kept *start(struct listings *ls, const char *path, struct slice title, enum listing_format format) {
	struct kept *k = calloc(1, sizeof *k);
	size_t length = strlen(path) + 1;
	if (!k || !(k->path = malloc(length + title.length))) {
		free(k);
		return NULL;
	}
	memcpy(k->path, path, length);
	if (title.length) memcpy(k->path + length, title.at, title.length);
	k->title = (struct slice){.at = k->path + length, .length = title.length};
	k->listings = ls;
	k->format = format;
	k->most = ls->bytes > LISTINGS_BYTES_MAX ? LISTINGS_BYTES_LEAST : LISTING_BYTES_MAX;
	k->job = (struct job){.run = make, .finish = made};
	k->references = 1;
	if (jobs_add(ls->jobs, &k->job)) return k;
	release(k);
	return NULL;
}

/* --- finding --- */

static bool same(const struct kept *k, const char *path, struct slice title, enum listing_format format) {
	return k->format == format && strcmp(k->path, path) == 0 && slice_equal(k->title, title);
}

/* The one that is kept, or an empty place for it. NULL: all are being made. */
static struct kept **find(struct listings *ls, const char *path, struct slice title, enum listing_format format) {
	struct kept **oldest = NULL;
	for (int i = 0; i < LISTINGS_KEPT; i++) {
		struct kept **k = &ls->kept[i];
		if (*k && (*k)->made && (*ls->now_ms - (*k)->made_ms >= LISTINGS_KEPT_MS || tree_passes((*k)->error)))
			forget(k);
		if (*k && same(*k, path, title, format)) return k;
		bool older = !*k || ((*k)->made && (!oldest || (*oldest && (*k)->made_ms < (*oldest)->made_ms)));
		if (older) oldest = k;
	}
	if (oldest) forget(oldest);
	return oldest;
}

static int read_kept(struct kept *k, struct listings_found *found) {
	if (k->error) return k->error;
	struct reader *r = malloc(sizeof *r);
	if (!r || !(r->reader = listing_read(k->listing))) {
		free(r);
		return ENOMEM;
	}
	r->kept = k;
	k->references++;
	*found = (struct listings_found){.reader = r, .length = listing_length(k->listing)};
	return 0;
}

int listings_find(struct listings *ls, const char *path, struct slice title, enum listing_format format, bool patient,
				  struct listings_found *found) {
	struct kept **k = find(ls, path, title, format);
	if (!k) return EBUSY;
	if (*k && (*k)->made) return read_kept(*k, found);
	if (!patient || (!*k && ls->bytes > 2 * LISTINGS_BYTES_MAX)) return EBUSY;
	if (!*k) {
		*k = start(ls, path, title, format);
		if (!*k) return ENOMEM;
		(*k)->references++;
	}
	*found = (struct listings_found){.job = &(*k)->job};
	return 0;
}

ssize_t listings_fill(void *reader, char *buffer, size_t size) {
	return listing_fill(((struct reader *)reader)->reader, buffer, size);
}

void listings_reader_free(void *reader) {
	struct reader *r = reader;
	listing_reader_free(r->reader);
	release(r->kept);
	free(r);
}
