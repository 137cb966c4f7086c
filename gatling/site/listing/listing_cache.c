/* listing_cache.c - see listing_cache.h. */
#include "gatling/site/listing/listing_cache.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct cached_listing {
	struct job job;
	struct listing_cache *listings;
	unsigned references; /* the table's, the job's, the readers' */
	bool made;
	int64_t made_ms;
	int error;
	struct listing *listing;
	size_t bytes;
	struct listing_request wanted;
	char path[]; /* and the title behind it: those of wanted */
};

struct listing_cache {
	const struct docroot *docroot;
	struct jobs *jobs;
	size_t bytes;
	const int64_t *now_ms;
	struct cached_listing *kept[LISTING_CACHE_KEPT];
};

struct listing_body {
	struct cached_listing *kept;
	struct listing_reader *reader;
};

struct listing_cache *listing_cache_new(const struct docroot *docroot, struct jobs *jobs, const int64_t *now_ms) {
	struct listing_cache *ls = calloc(1, sizeof *ls);
	if (!ls) return NULL;
	ls->docroot = docroot;
	ls->jobs = jobs;
	ls->now_ms = now_ms;
	return ls;
}

static void release(struct cached_listing *k) {
	if (--k->references) return;
	if (k->listing) listing_release(k->listing);
	k->listings->bytes -= k->bytes;
	free(k);
}

void listing_cache_free(struct listing_cache *ls) {
	if (!ls) return;
	for (int i = 0; i < LISTING_CACHE_KEPT; i++)
		if (ls->kept[i]) release(ls->kept[i]);
	free(ls);
}

/* --- making --- */

static void make(struct job *job, const atomic_bool *stop) {
	struct cached_listing *k = (struct cached_listing *)job;
	k->error = listing_make(k->listings->docroot, &k->wanted, stop, &k->listing);
}

static void forget(struct cached_listing **place) {
	struct cached_listing *k = *place;
	*place = NULL;
	if (k) release(k);
}

static void made(struct job *job) {
	struct cached_listing *k = (struct cached_listing *)job;
	k->made = true;
	k->made_ms = *k->listings->now_ms;
	/* if the job did not run, the next request starts another one */
	for (int i = 0; i < LISTING_CACHE_KEPT && !job->ran; i++)
		if (k->listings->kept[i] == k) forget(&k->listings->kept[i]);
	if (k->listing) k->bytes = listing_memory(k->listing);
	k->listings->bytes += k->bytes;
	release(k);
}

/* Returns the listing with a reference for the job; NULL if there is no memory or no thread. */
static struct cached_listing *start(struct listing_cache *ls, const struct listing_request *wanted) {
	size_t length = strlen(wanted->path) + 1;
	struct cached_listing *k = calloc(1, sizeof *k + length + wanted->title.length);
	if (!k) return NULL;
	memcpy(k->path, wanted->path, length);
	if (wanted->title.length) memcpy(k->path + length, wanted->title.at, wanted->title.length);
	k->wanted = *wanted;
	k->wanted.path = k->path;
	k->wanted.title.at = k->path + length;
	k->wanted.bytes = ls->bytes > LISTING_CACHE_BYTES_MAX ? LISTING_CACHE_BYTES_LEAST : LISTING_BYTES_MAX;
	k->listings = ls;
	k->job = (struct job){.run = make, .finish = made};
	k->references = 1;
	if (jobs_add(ls->jobs, &k->job)) return k;
	release(k);
	return NULL;
}

/* --- finding --- */

static bool same(const struct listing_request *a, const struct listing_request *b) {
	return a->format == b->format && a->coding == b->coding && strcmp(a->path, b->path) == 0 &&
		   slice_equal(a->title, b->title);
}

/* Returns the place of the listing that was asked for, or an empty place for it. NULL: all are being made. */
static struct cached_listing **find(struct listing_cache *ls, const struct listing_request *wanted) {
	struct cached_listing **oldest = NULL;
	for (int i = 0; i < LISTING_CACHE_KEPT; i++) {
		struct cached_listing **k = &ls->kept[i];
		if (*k && (*k)->made &&
			(*ls->now_ms - (*k)->made_ms >= LISTING_CACHE_KEPT_MS || docroot_error_is_temporary((*k)->error)))
			forget(k);
		if (*k && same(&(*k)->wanted, wanted)) return k;
		bool older = !*k || ((*k)->made && (!oldest || (*oldest && (*k)->made_ms < (*oldest)->made_ms)));
		if (older) oldest = k;
	}
	if (oldest) forget(oldest);
	return oldest;
}

static int read_kept(struct cached_listing *k, struct listing_result *found) {
	if (k->error) return k->error;
	struct listing_body *r = malloc(sizeof *r);
	if (!r || !(r->reader = listing_read(k->listing))) {
		free(r);
		return ENOMEM;
	}
	r->kept = k;
	k->references++;
	*found = (struct listing_result){
		.reader = r, .length = listing_length(k->listing), .coding = listing_coding(k->listing)};
	return 0;
}

int listing_cache_find(struct listing_cache *ls, const struct listing_request *wanted, bool patient,
					   struct listing_result *found) {
	struct cached_listing **k = find(ls, wanted);
	if (!k) return EBUSY;
	if (*k && (*k)->made) return read_kept(*k, found);
	if (!patient || (!*k && ls->bytes > 2 * LISTING_CACHE_BYTES_MAX)) return EBUSY;
	if (!*k) {
		*k = start(ls, wanted);
		if (!*k) return ENOMEM;
		(*k)->references++;
	}
	*found = (struct listing_result){.job = &(*k)->job};
	return 0;
}

ssize_t listing_cache_body_fill(void *reader, char *buffer, size_t size) {
	return listing_fill(((struct listing_body *)reader)->reader, buffer, size);
}

void listing_cache_body_free(void *reader) {
	struct listing_body *r = reader;
	listing_reader_free(r->reader);
	release(r->kept);
	free(r);
}
