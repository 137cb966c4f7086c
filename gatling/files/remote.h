/* remote.h - the files below the document root that are on other machines or that programs serve (NFS, FUSE). No call
 * for one of them is made on the loop, since it may take long or never return: threads look at the files and read them,
 * and the loop takes what they have found. What it asks for and does not find is noted as wanted; the request then
 * waits until threads have looked, and is decided again. A call that takes longer than REMOTE_HUNG_MS counts as failed
 * (ETIMEDOUT) until it returns. Each file system has threads of its own. */
#ifndef GATLING_FILES_REMOTE_H
#define GATLING_FILES_REMOTE_H

#include <stdint.h>

#include "gatling/files/remote_found.h"
#include "gatling/files/remote_place.h"

enum {
	REMOTE_SEEN_MS = 1000,   /* how long what was found is used */
	REMOTE_SINCE_MS = 10000, /* the same, by a request that waits for more */
	REMOTE_HUNG_MS = 1000,   /* after which a call that has not returned counts as hung */
	REMOTE_TICK_MS = 250,    /* between two looks for such calls */
	REMOTE_LARGE_MS = 60000, /* after which it is found out again whether a directory has too many names */
	REMOTE_PATHS = 4096,     /* paths of which something is known, or that threads look at */
	REMOTE_NOTED = 64,       /* paths that are noted at a time; a request notes the others when it is decided again */
	/* Content that was read and not taken, as when the client has gone: so many files, and bytes; and so many times as
	 * much of the last REMOTE_SEEN_MS, which requests are about to take. */
	REMOTE_HELD = 64,
	REMOTE_HELD_BYTES = 16 * 1024 * 1024,
	REMOTE_HELD_LATELY = 4
};

struct remote;

/* Returns what a worker knows of such files, or NULL without memory. The arguments must outlive it. mounts may be NULL.
 * now_ms is the monotonic clock of the turn. */
struct remote *remote_new(io_loop *loop, const struct docroot *docroot, struct mounts *mounts, const int64_t *now_ms);

/* Stops the threads. After that no function but remote_file_close() and remote_free() may be called. Returns false if a
 * call hangs: then all that it may use, which includes the loop, has to stay until the process ends. */
bool remote_stop(struct remote *remote);
void remote_free(struct remote *remote); /* after remote_stop() has returned true; NULL is allowed */

/* Looks for file systems that were mounted or unmounted. Returns whether there is one that any file below the document
 * root may be on. */
bool remote_is_needed(struct remote *remote);

/* From now on a request is decided that has waited since a time of the clock (0: it has not): what was found since then
 * is used, too. */
void remote_decide(struct remote *remote, int64_t since_ms);

/* Returns whether a path certainly leads to such a file system. */
bool remote_has(struct remote *remote, struct slice path);

/* Notes that a symlink leads to such a file system, or to another one that is not that of the root. */
void remote_note_link(struct remote *remote, const char *path);

/* Returns what was found at a path, which is valid until the end of the turn, or NULL with EINPROGRESS if it has to be
 * found out; then that is noted. Most paths that are asked for do not exist: precompressed copies, files of rules. So
 * the names in its directory are found out first, if they are not too many. */
struct remote_found *remote_find(struct remote *remote, const char *path, unsigned what);

/* Notes a path that is likely to exist, and the names in all directories on it, where there may be rules. */
void remote_expect(struct remote *remote, const char *path, unsigned what);

/* Returns whether anything was noted since the last remote_fetch(). */
bool remote_is_awaited(const struct remote *remote);

/* Starts to find out what was noted. Returns the job to wait for, which need not be waited for, or NULL if that is not
 * possible. */
struct job *remote_fetch(struct remote *remote);

/* Starts to find out what was noted, without anybody who waits for it. */
void remote_begin(struct remote *remote);

/* Finishes what the threads have done. */
void remote_collect(struct remote *remote);

/* Returns the milliseconds until remote_tick() is due, -1 if nothing is under way. remote_tick() gives up what is
 * hung. */
int remote_due(const struct remote *remote, int64_t now_ms);
void remote_tick(struct remote *remote);

/* Returns the number of threads whose calls are hung. */
unsigned remote_hung(const struct remote *remote);

/* Returns the number of unfinished jobs. */
unsigned remote_jobs_count(const struct remote *remote);

/* Has a thread report why a path is not served (report_unserved()). */
void remote_report(struct remote *remote, const char *path);

/* Returns the threads for other work at a path, NULL without memory. */
struct jobs *remote_jobs(struct remote *remote, struct slice path);

#endif
