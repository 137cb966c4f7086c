/* remote.c - see remote.h: what is known of each path, and the requests that wait for it. What threads do is in
 * remote_found.c. */
#include "gatling/files/remote.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "gatling/base/slice.h"
#include "gatling/files/report.h"

enum { BUCKETS = 1024 };

/* A request, or several, that wait for a path. */
struct want {
	struct batch *batch;
	LIST_ENTRY(want) chain;
};

LIST_HEAD(wants, want);

/* The paths that a request waits for. */
struct batch {
	struct job job; /* in no queue */
	unsigned left;  /* paths that are not known yet */
	struct want want[REMOTE_NOTED];
};

/* What is known of a path. */
struct known {
	struct job job;
	struct remote *remote;
	struct remote_place *place; /* where threads look */
	bool noted, under_way;
	bool hung;             /* under way, and given up */
	bool counted;          /* in place->hung */
	enum remote_lane lane; /* of the job that is under way */
	unsigned wanted;       /* what is noted, or was asked for last */
	int64_t seen_ms;       /* 0: nothing is known */
	struct remote_found found;
	struct wants wants;
	/* while it is under way: */
	unsigned steps_before; /* at the last tick that found new ones, */
	int64_t steps_ms;      /* and when that was */
	TAILQ_ENTRY(known) running;
	/* for the thread, which writes result and steps: */
	unsigned what;
	struct remote_file *file; /* for the descriptor in result; NULL: none is wanted */
	struct file_version version;
	struct remote_found result;
	atomic_uint steps;
	/* */
	uint64_t hash;
	LIST_ENTRY(known) chain;
	TAILQ_ENTRY(known) age, holding;
	bool holds; /* it is in the list of those that hold content, which may have been taken since */
	char path[];
};

struct remote {
	struct docroot docroot;
	const int64_t *now_ms;
	int64_t since_ms; /* see remote_decide() */
	int64_t tick_ms;
	bool reports; /* a report is under way */
	struct remote_places places;
	struct remote_found absent;         /* what is found where there certainly is nothing */
	unsigned paths, noted_count, count; /* count: paths that are under way */
	struct known *noted[REMOTE_NOTED];
	TAILQ_HEAD(, known) age; /* the least recently used first */
	TAILQ_HEAD(known_list, known) holding;
	TAILQ_HEAD(, known) running; /* those that are under way */
	LIST_HEAD(, known) bucket[BUCKETS];
};

struct remote *remote_new(io_loop *loop, const struct docroot *docroot, struct mounts *mounts, const int64_t *now_ms) {
	struct remote *r = calloc(1, sizeof *r);
	if (!r) return NULL;
	r->docroot = *docroot;
	r->now_ms = now_ms;
	remote_places_open(&r->places, loop, docroot, mounts, now_ms);
	r->absent = (struct remote_found){.error = ENOENT, .fd = -1};
	TAILQ_INIT(&r->age);
	TAILQ_INIT(&r->holding);
	TAILQ_INIT(&r->running);
	return r;
}

bool remote_is_needed(struct remote *r) {
	remote_places_update(&r->places);
	return r->places.any;
}

void remote_decide(struct remote *r, int64_t since_ms) {
	r->since_ms = since_ms && *r->now_ms - since_ms < REMOTE_SINCE_MS ? since_ms : 0;
}

bool remote_has(struct remote *r, struct slice path) { return remote_place_find(&r->places, path); }

void remote_note_link(struct remote *r, const char *path) { remote_place_note_link(&r->places, path); }

/* Returns the place where threads look at a path. */
static struct remote_place *place_of(struct remote *r, struct slice path) {
	struct remote_place *p = remote_place_find(&r->places, path);
	return p ? p : r->places.place;
}

struct jobs *remote_jobs(struct remote *r, struct slice path) {
	return remote_place_jobs(place_of(r, path), REMOTE_WORK);
}

/* --- paths --- */

static void forget_content(struct remote_found *f) {
	if (f->file) remote_file_close(f->file);
	free(f->start);
	f->file = NULL;
	f->start = NULL;
}

static void forget_all(struct remote_found *f) {
	forget_content(f);
	remote_found_free(f);
}

static void stop_holding(struct remote *r, struct known *k) {
	if (k->holds) TAILQ_REMOVE(&r->holding, k, holding);
	k->holds = false;
}

/* Notes that a path holds content, and forgets that of others beyond the limits, the oldest first. */
static void hold(struct remote *r, struct known *new) {
	unsigned count = 0;
	size_t bytes = 0;
	stop_holding(r, new);
	if (!new->found.start && !new->found.file) return;
	TAILQ_INSERT_TAIL(&r->holding, new, holding);
	new->holds = true;
	for (struct known *k = new, *older; k; k = older) {
		older = TAILQ_PREV(k, known_list, holding);
		const bool held = k->found.start || k->found.file;
		count += held;
		if (held) bytes += k->found.length;
		const unsigned more = *r->now_ms - k->seen_ms < REMOTE_SEEN_MS ? REMOTE_HELD_LATELY : 1;
		if (held && count <= more * REMOTE_HELD && bytes <= more * (size_t)REMOTE_HELD_BYTES) continue;
		stop_holding(r, k);
		forget_content(&k->found);
		k->found.taken = true;
	}
}

static void drop(struct remote *r, struct known *k) {
	forget_all(&k->found);
	stop_holding(r, k);
	LIST_REMOVE(k, chain);
	TAILQ_REMOVE(&r->age, k, age);
	r->paths--;
	free(k);
}

/* Makes room for one more path. Returns false if there is none. */
static bool make_room(struct remote *r) {
	struct known *k = TAILQ_FIRST(&r->age);
	while (r->paths >= REMOTE_PATHS && k) {
		struct known *newer = TAILQ_NEXT(k, age);
		/* what was found in this turn is being used */
		if (!k->noted && !k->under_way && k->seen_ms != *r->now_ms) drop(r, k);
		k = newer;
	}
	return r->paths < REMOTE_PATHS;
}

static struct known *find(const struct remote *r, struct slice path, uint64_t hash) {
	struct known *k = LIST_FIRST(&r->bucket[hash % BUCKETS]);
	while (k && !(k->hash == hash && slice_equal(slice_of(k->path), path))) k = LIST_NEXT(k, chain);
	return k;
}

static struct known *add(struct remote *r, struct slice path, uint64_t hash) {
	struct known *k = make_room(r) ? calloc(1, sizeof *k + path.length + 1) : NULL;
	if (!k) return NULL;
	*text_copy(k->path, path) = '\0';
	k->remote = r;
	k->hash = hash;
	k->found.fd = -1;
	LIST_INIT(&k->wants);
	LIST_INSERT_HEAD(&r->bucket[hash % BUCKETS], k, chain);
	TAILQ_INSERT_TAIL(&r->age, k, age);
	r->paths++;
	return k;
}

/* Returns whether what is wanted of a path is known. */
static bool is_known(const struct remote *r, const struct known *k, unsigned what) {
	if (!k->seen_ms) return false;
	const int64_t age_ms = *r->now_ms - k->seen_ms;
	if (what == REMOTE_NAMES && k->found.names_error == E2BIG && age_ms < REMOTE_LARGE_MS) return true;
	const bool lately = age_ms < REMOTE_SEEN_MS || (r->since_ms && k->seen_ms >= r->since_ms);
	if (!lately && !k->hung) return false;
	if (k->found.error) return true;
	return (k->found.what & what) == what && !(what & (REMOTE_OPENED | REMOTE_READ) && k->found.taken);
}

/* Returns what is known of a path, or NULL if that is not what is wanted. */
static struct known *find_known(struct remote *r, struct slice path, unsigned what) {
	struct known *k = find(r, path, slice_hash(0, path));
	if (!k || !is_known(r, k, what)) return NULL;
	TAILQ_REMOVE(&r->age, k, age);
	TAILQ_INSERT_TAIL(&r->age, k, age);
	return k;
}

/* Notes what is wanted of a path. Sets errno to EINPROGRESS, ENOMEM or ENAMETOOLONG. */
static void note(struct remote *r, struct slice path, unsigned what) {
	const uint64_t hash = slice_hash(0, path);
	struct known *k = find(r, path, hash);
	errno = path.length < PATH_MAX ? ENOMEM : ENAMETOOLONG;
	if (path.length >= PATH_MAX || (!k && !(k = add(r, path, hash)))) return;
	/* what else is known is found out again, so that it is not lost */
	const unsigned other = k->noted ? k->wanted : is_known(r, k, 0) ? k->found.what : 0;
	k->wanted = other | what;
	errno = EINPROGRESS;
	if (k->noted || r->noted_count == REMOTE_NOTED) return;
	k->noted = true;
	r->noted[r->noted_count++] = k;
}

/* Splits a path. Returns false if nothing is asked about the directory that has it: that is on this machine, or a
 * directory leads to itself. */
static bool split(struct remote *r, struct slice path, struct slice *directory, struct slice *name) {
	if (path.length && path.at[path.length - 1] == '/') path.length--;
	size_t start = path.length;
	while (start && path.at[start - 1] != '/') start--;
	*name = slice_rest(path, start);
	*directory = start ? slice_first(path, start - 1) : SLICE(".");
	return !slice_equal(*name, SLICE(".")) && remote_has(r, start ? *directory : SLICE(""));
}

struct remote_found *remote_find(struct remote *r, const char *path, unsigned what) {
	const struct slice whole = slice_of(path);
	struct slice directory, name;
	struct known *k = find_known(r, whole, what);
	if (k) return &k->found;
	const bool inside = split(r, whole, &directory, &name);
	struct known *names = inside ? find_known(r, directory, REMOTE_NAMES) : NULL;
	if (names && names->found.error) return &names->found; /* what is in it fails, too */
	if (names && remote_found_lacks(&names->found, name)) return &r->absent;
	if (inside && !names) note(r, directory, REMOTE_NAMES);
	else note(r, whole, what);
	return NULL;
}

void remote_expect(struct remote *r, const char *path, unsigned what) {
	const struct slice whole = slice_of(path);
	struct slice directory, name, rest = whole;
	bool absent = false;
	while (split(r, rest, &directory, &name)) {
		const struct known *names = find_known(r, directory, REMOTE_NAMES);
		if (names) absent |= names->found.error || remote_found_lacks(&names->found, name);
		else note(r, directory, REMOTE_NAMES);
		if (slice_equal(directory, SLICE("."))) break;
		rest = directory;
	}
	if (!absent && !find_known(r, whole, what)) note(r, whole, what);
}

/* --- finding out --- */

static void search(struct job *job, const atomic_bool *stop) {
	struct known *k = (struct known *)job;
	const struct remote_search search = {.docroot = &k->remote->docroot,
										 .path = k->path,
										 .what = k->what,
										 .known = k->version.mode ? &k->version : NULL,
										 .steps = &k->steps,
										 .stop = stop};
	remote_found_search(&search, &k->result);
}

/* Tells the requests that wait for a path. */
static void tell(struct known *k) {
	struct wants wants = k->wants; /* requests that are resumed may want the path again */
	LIST_INIT(&k->wants);
	if (!LIST_EMPTY(&wants)) LIST_FIRST(&wants)->chain.le_prev = &LIST_FIRST(&wants);
	for (struct want *w; (w = LIST_FIRST(&wants));) {
		LIST_REMOVE(w, chain);
		if (--w->batch->left == 0) job_finish(&w->batch->job);
	}
}

/* Lets a path count as hung for REMOTE_SEEN_MS. */
static void fail(const struct remote *r, struct known *k) {
	forget_all(&k->found);
	k->found = (struct remote_found){.error = ETIMEDOUT, .fd = -1};
	k->seen_ms = *r->now_ms;
}

/* Replaces what was known by the result. The content of the same version stays. */
static void keep_result(struct known *k) {
	struct remote_found old = k->found;
	k->found = k->result;
	k->result = (struct remote_found){.fd = -1};
	if (k->found.same) {
		k->found.content_error = old.content_error;
		k->found.content = old.content;
		k->found.start = old.start;
		k->found.length = old.length;
		k->found.file = old.file;
		k->found.same = false;
		k->found.taken = !old.start && !old.file; /* meanwhile */
		old.start = NULL;
		old.file = NULL;
	}
	if (k->found.fd != -1) {
		remote_file_give(k->file, k->found.fd);
		k->found.file = k->file;
		k->found.fd = -1;
		k->file = NULL;
	}
	forget_all(&old);
}

static void found(struct job *job) {
	struct known *k = (struct known *)job;
	struct remote *r = k->remote;
	if (k->counted) k->place->hung[k->lane]--;
	if (k->hung && --k->place->given_up == 0) remote_place_say(k->place);
	k->under_way = k->hung = k->counted = false;
	TAILQ_REMOVE(&r->running, k, running);
	r->count--;
	k->place->progress_ms[k->lane] = *r->now_ms;
	if (job->ran) {
		keep_result(k);
		k->seen_ms = *r->now_ms;
		hold(r, k);
	}
	free(k->file);
	k->file = NULL;
	tell(k);
}

/* Has a thread find out what is noted of a path. Returns false if that is not possible now, or all threads hang: then
 * the path has failed. */
static bool start(struct remote *r, struct known *k) {
	struct remote_place *p = place_of(r, slice_of(k->path));
	const bool was_there = k->seen_ms && !k->found.error;
	const enum remote_lane lane = was_there ? REMOTE_KNOWN : REMOTE_NEW;
	struct jobs *jobs = remote_place_jobs(p, lane);
	if (p->hung[lane] == remote_place_threads(lane)) {
		fail(r, k);
		return false;
	}
	const unsigned content = k->wanted & (REMOTE_OPENED | REMOTE_READ);
	const bool kept = was_there && k->found.start && content && (k->found.what & content) == content;
	k->place = p;
	k->lane = lane;
	k->version = kept ? file_version_of(&k->found.content) : (struct file_version){0};
	k->job = (struct job){.run = search, .finish = found};
	k->what = k->wanted;
	atomic_store(&k->steps, 0);
	k->steps_before = 0;
	k->steps_ms = *r->now_ms;
	if (k->wanted & REMOTE_OPENED) k->file = remote_file_new(p);
	if ((k->wanted & REMOTE_OPENED && !k->file) || !jobs || !jobs_add(jobs, &k->job)) {
		free(k->file);
		k->file = NULL;
		return false;
	}
	k->under_way = true;
	TAILQ_INSERT_TAIL(&r->running, k, running);
	r->count++;
	return true;
}

bool remote_is_awaited(const struct remote *r) { return r->noted_count; }

static void finish_batch(struct job *job) { free(job); }

/* Starts to find out what was noted, as long as fewer than `most` paths are under way. b waits for it; NULL: nobody. */
static void start_noted(struct remote *r, unsigned most, struct batch *b) {
	for (unsigned i = 0; i < r->noted_count; i++) {
		struct known *k = r->noted[i];
		k->noted = false;
		if (!k->under_way && (r->count >= most || !start(r, k))) continue;
		if (!b) continue;
		b->want[b->left].batch = b;
		LIST_INSERT_HEAD(&k->wants, &b->want[b->left], chain);
		b->left++;
	}
	r->noted_count = 0;
}

struct job *remote_fetch(struct remote *r) {
	struct batch *b = malloc(sizeof *b);
	if (b) *b = (struct batch){.job.finish = finish_batch};
	start_noted(r, b ? UINT_MAX : 0, b);
	if (b && b->left) return &b->job;
	free(b);
	return NULL;
}

void remote_begin(struct remote *r) { start_noted(r, JOBS_MAX / 2, NULL); /* requests wait for the others */ }

void remote_collect(struct remote *r) { remote_places_collect(&r->places); }

/* --- what hangs --- */

int remote_due(const struct remote *r, int64_t now_ms) {
	if (!r->count && !r->places.closing) return -1;
	const int64_t left = r->tick_ms + REMOTE_TICK_MS - now_ms;
	return left > 0 ? (int)left : 0;
}

/* Notes the calls of a path that have returned. */
static void note_progress(struct known *k, int64_t now_ms) {
	const unsigned steps = atomic_load(&k->steps);
	if (steps == k->steps_before) return;
	k->steps_before = steps;
	k->steps_ms = k->place->progress_ms[k->lane] = now_ms;
}

/* Returns whether a path has to be given up. One that waits for a thread has, if no thread gets on. */
static bool is_overdue(const struct known *k, int64_t now_ms) {
	const int64_t others_ms = k->place->progress_ms[k->lane];
	const bool runs = k->steps_before || others_ms < k->steps_ms;
	return !k->hung && now_ms - (runs ? k->steps_ms : others_ms) >= REMOTE_HUNG_MS;
}

static void give_up(const struct remote *r, struct known *k) {
	fail(r, k);
	k->hung = true;
	k->counted = k->steps_before;
	k->place->hung[k->lane] += k->counted;
	k->place->given_up++;
}

void remote_tick(struct remote *r) {
	struct known *k;
	r->tick_ms = *r->now_ms;
	TAILQ_FOREACH(k, &r->running, running) { note_progress(k, *r->now_ms); }
	TAILQ_FOREACH(k, &r->running, running) {
		if (is_overdue(k, *r->now_ms)) give_up(r, k);
	}
	for (int i = 0; i < REMOTE_PLACES; i++) remote_place_say(&r->places.place[i]);
	remote_places_close_files(&r->places);
	for (k = TAILQ_FIRST(&r->running); k;) { /* requests that are resumed may change the list */
		const bool waits = k->hung && !LIST_EMPTY(&k->wants);
		if (waits) tell(k);
		k = waits ? TAILQ_FIRST(&r->running) : TAILQ_NEXT(k, running);
	}
}

unsigned remote_hung(const struct remote *r) {
	unsigned count = 0;
	for (int i = 0; i < REMOTE_PLACES; i++)
		count += r->places.place[i].hung[REMOTE_NEW] + r->places.place[i].hung[REMOTE_KNOWN];
	return count;
}

unsigned remote_jobs_count(const struct remote *r) { return r->count; }

/* --- reports --- */

struct report {
	struct job job;
	struct remote *remote;
	char path[];
};

static void run_report(struct job *job, const atomic_bool *stop) {
	const struct report *report = (struct report *)job;
	(void)stop;
	report_unserved(&report->remote->docroot, report->path);
}

static void reported(struct job *job) {
	struct report *report = (struct report *)job;
	report->remote->reports = false;
	free(report);
}

void remote_report(struct remote *r, const char *path) {
	const size_t length = strlen(path) + 1;
	struct jobs *jobs = remote_jobs(r, slice_of(path));
	struct report *report = r->reports ? NULL : malloc(sizeof *report + length);
	if (!report) return;
	*report = (struct report){.job = {.run = run_report, .finish = reported}, .remote = r};
	memcpy(report->path, path, length);
	r->reports = jobs && jobs_add(jobs, &report->job);
	if (!r->reports) free(report);
}

/* --- the end --- */

bool remote_stop(struct remote *r) { return remote_places_stop(&r->places); }

void remote_free(struct remote *r) {
	if (!r) return;
	for (struct known *k = TAILQ_FIRST(&r->age), *newer; k; k = newer) {
		newer = TAILQ_NEXT(k, age);
		drop(r, k);
	}
	remote_places_free(&r->places);
	free(r);
}
