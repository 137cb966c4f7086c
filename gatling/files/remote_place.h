/* remote_place.h - the file systems below the document root that may be on other machines, or that programs serve, each
 * with threads of its own for the calls that may hang; and the files that these have opened. */
#ifndef GATLING_FILES_REMOTE_PLACE_H
#define GATLING_FILES_REMOTE_PLACE_H

#include <stdint.h>
#include <sys/queue.h>

#include "gatling/base/job.h"
#include "gatling/base/notice.h"
#include "gatling/files/docroot.h"
#include "gatling/files/mounts.h"

enum {
	REMOTE_THREADS = 16,      /* of a worker for each file system, for paths that are new, */
	REMOTE_THREADS_KNOWN = 8, /* for paths that were there before, so that these do not wait for others, */
	REMOTE_THREADS_WORK = 4,  /* for listings, compression and hashes, which take long, */
	REMOTE_THREADS_READ = 8,  /* and for the content of open files */
	REMOTE_STOP_MS = 1000,    /* for which the end of the server waits for calls of which none hangs yet */
	REMOTE_PLACES = MOUNTS_MAX + 1,
	REMOTE_LINKS = 32,     /* symlinks to other machines that are remembered, */
	REMOTE_LINK_MS = 10000 /* for so long, since they may be replaced */
};

enum remote_lane { REMOTE_NEW, REMOTE_KNOWN, REMOTE_WORK, REMOTE_LANES };

struct remote_places;
struct remote_file;

/* A file system. The first place is that of the root, if it is one of these, and of those that symlinks lead to. */
struct remote_place {
	struct remote_places *all;
	char *path; /* where it is mounted, malloc'd; NULL: it is not used, or the first */
	bool mounted;
	struct jobs *jobs[REMOTE_LANES]; /* NULL: not needed yet */
	io_tasks *readers;
	LIST_HEAD(, remote_file) closing; /* to be closed, as soon as the queue has room */
	bool said;                        /* that it hangs */
	notice_time next;                 /* when it may be said again */
	/* for remote.c: */
	unsigned hung[REMOTE_LANES];       /* threads whose calls are hung */
	int64_t progress_ms[REMOTE_LANES]; /* when a call returned last */
	unsigned given_up;                 /* paths whose calls are hung, or wait for one that is */
};

struct remote_places {
	io_loop *loop;
	struct mounts *mounts; /* NULL: unknown */
	const int64_t *now_ms;
	bool whole; /* the file system of the root is one */
	bool open;  /* symlinks may lead out of the root */
	bool any;   /* there is one that files below the root may be on */
	bool stopped;
	unsigned changes; /* mounts_update() when this was found */
	unsigned closing; /* files that wait to be closed */
	struct remote_place place[REMOTE_PLACES];
	struct {
		int64_t until_ms;
		char *path; /* malloc'd, or NULL */
	} link[REMOTE_LINKS];
	unsigned links; /* that were noted; the next one replaces the oldest */
};

/* Fills in *places, all zero before. The pointers stay the caller's. */
void remote_places_open(struct remote_places *places, io_loop *loop, const struct docroot *docroot,
						struct mounts *mounts, const int64_t *now_ms);

/* Looks for file systems that were mounted or unmounted. */
void remote_places_update(struct remote_places *places);

/* Returns the place that a path certainly leads to, or NULL. */
struct remote_place *remote_place_find(struct remote_places *places, struct slice path);

/* Notes that a symlink leads to such a file system, or to another one that is not that of the root. */
void remote_place_note_link(struct remote_places *places, const char *path);

/* Returns how many threads there are at most, and these, or NULL without memory. */
unsigned remote_place_threads(enum remote_lane lane);
struct jobs *remote_place_jobs(struct remote_place *place, enum remote_lane lane);

/* Says that a file system hangs (given_up), or does not any more. */
void remote_place_say(struct remote_place *place);

/* Finishes what the threads have done. */
void remote_places_collect(struct remote_places *places);

/* Has threads close what they had no room for before. */
void remote_places_close_files(struct remote_places *places);

/* Stops the threads. Returns false if a call hangs, see remote_stop(). */
bool remote_places_stop(struct remote_places *places);
void remote_places_free(struct remote_places *places);

/* Returns a file that has no descriptor yet, or NULL without memory. */
struct remote_file *remote_file_new(struct remote_place *place);
void remote_file_give(struct remote_file *file, int fd);

/* An open file: whoever takes it out of what was found closes it. Its descriptor is for these threads alone.
 * remote_file_close() has one of them close it. */
int remote_file_descriptor(const struct remote_file *file);
struct jobs *remote_file_jobs(const struct remote_file *file);
io_tasks *remote_file_readers(const struct remote_file *file);
void remote_file_close(struct remote_file *file);

#endif
