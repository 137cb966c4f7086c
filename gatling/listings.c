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
	struct listing_wanted wanted; /* its path, with the title behind it, is its own */
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
	free((char *)k->wanted.path);
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
	k->error = listing_make(k->listings->tree, &k->wanted, stop, &k->listing);
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

static struct kept *start(struct listings *ls, const struct listing_wanted *wanted) {
	struct kept *k = calloc(1, sizeof *k);
	size_t length = strlen(wanted->path) + 1;
	char *path = k ? malloc(length + wanted->title.length) : NULL;
	if (!path) {
		free(k);
		return NULL;
	}
	memcpy(path, wanted->path, length);
	if (wanted->title.length) memcpy(path + length, wanted->title.at, wanted->title.length);
	k->wanted = *wanted;
	k->wanted.path = path;
	k->wanted.title.at = path + length;
	k->listings = ls;
	k->wanted.bytes = ls->bytes > LISTINGS_BYTES_MAX ? LISTINGS_BYTES_LEAST : LISTING_BYTES_MAX;
	k->job = (struct job){.run = make, .finish = made};
	k->references = 1;
	if (jobs_add(ls->jobs, &k->job)) return k;
	release(k);
	return NULL;
}

/* --- finding --- */

static bool same(const struct listing_wanted *a, const struct listing_wanted *b) {
	return a->format == b->format && a->coding == b->coding && strcmp(a->path, b->path) == 0 &&
		   slice_equal(a->title, b->title);
}

/* The one that is kept, or an empty place for it. NULL: all are being made. */
static struct kept **find(struct listings *ls, const struct listing_wanted *wanted) {
	struct kept **oldest = NULL;
	for (int i = 0; i < LISTINGS_KEPT; i++) {
		struct kept **k = &ls->kept[i];
		if (*k && (*k)->made && (*ls->now_ms - (*k)->made_ms >= LISTINGS_KEPT_MS || tree_passes((*k)->error)))
			forget(k);
		if (*k && same(&(*k)->wanted, wanted)) return k;
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
	*found = (struct listings_found){
		.reader = r, .length = listing_length(k->listing), .coding = listing_coding(k->listing)};
	return 0;
}

int listings_find(struct listings *ls, const struct listing_wanted *wanted, bool patient,
				  struct listings_found *found) {
	struct kept **k = find(ls, wanted);
	if (!k) return EBUSY;
	if (*k && (*k)->made) return read_kept(*k, found);
	if (!patient || (!*k && ls->bytes > 2 * LISTINGS_BYTES_MAX)) return EBUSY;
	if (!*k) {
		*k = start(ls, wanted);
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
