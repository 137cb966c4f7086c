/* remote_place.c - see remote_place.h. */
#include "gatling/files/remote_place.h"

#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "io/window.h"

enum { OTHER = 0 }; /* the first place */

void remote_places_open(struct remote_places *r, io_loop *loop, const struct docroot *docroot, struct mounts *mounts,
						const int64_t *now_ms) {
	r->loop = loop;
	r->mounts = mounts;
	r->now_ms = now_ms;
	r->whole = r->any = platform_is_remote(docroot->root);
	r->open = !docroot->symlinks_inside && !docroot_is_chroot(docroot);
	for (int i = 0; i < REMOTE_PLACES; i++) r->place[i].all = r;
}

/* --- which there are --- */

/* Returns the place of a file system, which may be new, or the first one. */
static struct remote_place *place_for(struct remote_places *r, struct slice path) {
	struct remote_place *unused = NULL;
	for (int i = OTHER + 1; i < REMOTE_PLACES; i++) {
		struct remote_place *p = &r->place[i];
		if (p->path && slice_equal(slice_of(p->path), path)) return p;
		if (!p->path && !unused) unused = p;
	}
	if (!unused || !(unused->path = malloc(path.length + 1))) return &r->place[OTHER];
	*text_copy(unused->path, path) = '\0';
	return unused;
}

void remote_places_update(struct remote_places *r) {
	struct mounts_found found;
	const unsigned changes = r->mounts ? mounts_update(r->mounts) : r->changes;
	if (changes == r->changes || !mounts_find(r->mounts, &found)) return;
	r->changes = changes;
	r->any = r->whole || found.count || (r->open && found.any);
	for (int i = OTHER + 1; i < REMOTE_PLACES; i++) r->place[i].mounted = false;
	for (unsigned i = 0; i < found.count; i++) place_for(r, found.path[i])->mounted = true;
	free(found.text);
}

/* Returns whether a path is that of a directory, or in it. */
static bool is_in(struct slice path, const char *directory) {
	const size_t length = strlen(directory);
	return slice_starts(path, slice_of(directory)) && (path.length == length || path.at[length] == '/');
}

struct remote_place *remote_place_find(struct remote_places *r, struct slice path) {
	struct remote_place *best = r->whole ? &r->place[OTHER] : NULL;
	for (int i = OTHER + 1; i < REMOTE_PLACES; i++) {
		struct remote_place *p = &r->place[i];
		if (!p->path || !p->mounted || !is_in(path, p->path)) continue;
		if (!best || !best->path || strlen(best->path) < strlen(p->path)) best = p;
	}
	for (int i = 0; i < REMOTE_LINKS && !best; i++)
		if (r->link[i].path && *r->now_ms < r->link[i].until_ms && is_in(path, r->link[i].path))
			best = &r->place[OTHER];
	return best;
}

void remote_place_note_link(struct remote_places *r, const char *path) {
	const unsigned i = r->links++ % REMOTE_LINKS;
	free(r->link[i].path);
	r->link[i].path = strdup(path);
	r->link[i].until_ms = *r->now_ms + REMOTE_LINK_MS;
}

/* --- their threads --- */

unsigned remote_place_threads(enum remote_lane lane) {
	static const unsigned threads[REMOTE_LANES] = {REMOTE_THREADS, REMOTE_THREADS_KNOWN, REMOTE_THREADS_WORK};
	return threads[lane];
}

struct jobs *remote_place_jobs(struct remote_place *p, enum remote_lane lane) {
	if (!p->jobs[lane]) p->jobs[lane] = jobs_new(p->all->loop, 0, remote_place_threads(lane));
	return p->jobs[lane];
}

void remote_place_say(struct remote_place *p) {
	const char *path = p->path ? p->path : p->all->whole ? "the served directory" : "where symbolic links lead";
	const bool hangs = p->given_up;
	if (hangs && !p->said && notice_due(&p->next)) {
		p->said = true;
		notice_line(LEVEL_WARNING, "%s: the file system does not answer: its files are answered with 503 until it does",
					path);
	} else if (!hangs && p->said) {
		p->said = false;
		notice_line(LEVEL_INFO, "%s: the file system answers again", path);
	}
}

void remote_places_collect(struct remote_places *r) {
	for (struct remote_place *p = r->place; p < r->place + REMOTE_PLACES; p++) {
		for (int lane = 0; lane < REMOTE_LANES; lane++)
			if (p->jobs[lane]) jobs_collect(p->jobs[lane]);
		if (p->readers) io_windows_collect(p->readers);
	}
}

bool remote_places_stop(struct remote_places *r) {
	bool all = true;
	r->stopped = true;
	for (struct remote_place *p = r->place; p < r->place + REMOTE_PLACES; p++) {
		const int most_ms = p->given_up ? 0 : REMOTE_STOP_MS;
		for (int lane = 0; lane < REMOTE_LANES; lane++)
			if (p->jobs[lane]) all &= jobs_stop(p->jobs[lane], most_ms);
		if (!p->readers) continue;
		const bool ended = io_tasks_stop(p->readers, most_ms);
		io_windows_collect(p->readers);
		if (ended) io_tasks_free(p->readers);
		all &= ended;
	}
	return all;
}

/* --- open files --- */

struct remote_file {
	struct job job; /* that closes it */
	struct remote_place *place;
	int fd;
	LIST_ENTRY(remote_file) chain;
};

struct remote_file *remote_file_new(struct remote_place *place) {
	struct remote_file *f = malloc(sizeof *f);
	if (f) *f = (struct remote_file){.place = place, .fd = -1};
	return f;
}

void remote_file_give(struct remote_file *f, int fd) { f->fd = fd; }

int remote_file_descriptor(const struct remote_file *f) { return f->fd; }

struct jobs *remote_file_jobs(const struct remote_file *f) {
	return remote_place_jobs(f->place, REMOTE_WORK);
}

io_tasks *remote_file_readers(const struct remote_file *f) {
	struct remote_place *p = f->place;
	if (!p->readers) p->readers = io_tasks_new(p->all->loop, 0, REMOTE_THREADS_READ);
	return p->readers;
}

static void run_close(struct job *job, const atomic_bool *stop) {
	(void)stop;
	close(((struct remote_file *)job)->fd);
}

static void closed(struct job *job) { free(job); }

/* Has threads close what is to be closed, as far as their queue has room. */
static void close_files(struct remote_place *p) {
	for (struct remote_file *f; (f = LIST_FIRST(&p->closing));) {
		struct jobs *jobs = remote_place_jobs(p, REMOTE_KNOWN);
		f->job = (struct job){.run = run_close, .finish = closed};
		if (!jobs || !jobs_add(jobs, &f->job)) return;
		LIST_REMOVE(f, chain);
		p->all->closing--;
	}
}

void remote_places_close_files(struct remote_places *r) {
	for (int i = 0; i < REMOTE_PLACES; i++) close_files(&r->place[i]);
}

void remote_file_close(struct remote_file *f) {
	struct remote_place *p = f->place;
	if (f->fd == -1 || p->all->stopped) { /* the end of the process closes it */
		free(f);
		return;
	}
	LIST_INSERT_HEAD(&p->closing, f, chain);
	p->all->closing++;
	close_files(p);
}

void remote_places_free(struct remote_places *r) {
	for (struct remote_place *p = r->place; p < r->place + REMOTE_PLACES; p++) {
		for (struct remote_file *f; (f = LIST_FIRST(&p->closing));) {
			LIST_REMOVE(f, chain);
			free(f);
		}
		free(p->path);
	}
	for (int i = 0; i < REMOTE_LINKS; i++) free(r->link[i].path);
}
