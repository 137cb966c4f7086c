/* broker.h - a process that stays outside the document root, as the user who started the server, and opens files that
 * the command line names: it reads certificates that have changed, and opens the log after it was renamed. Another such
 * process connects to the unix sockets of upstreams, with the rights of the user who serves. Both open files by name in
 * directories that were named before they started, and never pass on a directory, so that the server itself has no way
 * out of the root; nor a file that may be on a disk that hangs, but for the log. Several threads may use one broker. */
#ifndef GATLING_BROKER_BROKER_H
#define GATLING_BROKER_BROKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "gatling/base/file_version.h"
#include "gatling/broker/broker_rule.h"

struct account; /* sandbox/account.h */
struct broker;

/* Returns a broker, or NULL without memory. */
struct broker *broker_new(void);

/* Adds a place: the directory path or, for BROKER_FILE, BROKER_LOG and BROKER_SOCKET, the directory of the file path.
 * That of sockets need not exist yet. Call it before broker_start(). The directory is opened by its path for each
 * request, since another one may have taken its place. But that of BROKER_PEMS is opened only here, since it is the
 * root, in which the server stays; and those of BROKER_LOG and BROKER_LOGS, since users who may rename a directory
 * above it must not choose where root writes. The places of one broker are all for sockets, or none is. *name becomes
 * the name of the file, within path, which must stay valid. Returns the number of the place, or -1 with errno. */
int broker_add(struct broker *broker, const char *path, enum broker_rule rule, const char **name);

/* Has the process never connect to the socket file that is at path now, whatever leads to it: a symlink, a hard link.
 * Call it before broker_start(). Returns 0, or -1 with errno. */
int broker_refuse(struct broker *broker, const char *path);

/* Starts the process, if there are places, and closes the directories in this one. sandbox: limit its system calls.
 * user: whose rights it has from then on; NULL: those of the user who starts it. No other thread may run yet. Returns
 * 0, or -1 with errno. */
int broker_start(struct broker *broker, bool sandbox, const struct account *user);

/* Returns the descriptor of the socket to the process, which a thread with a descriptor table of its own needs; -1:
 * none. */
int broker_channel(const struct broker *broker);

/* Ends the process, when nothing more is to be opened. Waits for its end, for at most CHILD_WAIT_MS. */
void broker_stop(struct broker *broker);
void broker_free(struct broker *broker); /* NULL is allowed */

/* From now on waits for at most BROKER_SHORT_WAIT_MS, and for a log for BROKER_WAIT_MS as before, since the caller has
 * other things to do. */
void broker_hurry(struct broker *broker);

/* Opens the log in a place. Returns the descriptor, or -1 with errno. EPERM: the name is not allowed in this place.
 * ESTALE: its path leads to another directory now. EPIPE: the process has ended. ETIMEDOUT: it has not answered in
 * time; until that answer comes, each call fails so at once. */
int broker_open_log(struct broker *broker, int place, const char *name);

/* Returns the text of a regular file in a place, with a NUL behind it, to be freed with free(), and writes its length
 * without that to *length. Returns NULL with errno, as broker_open_log() and file_load(). */
char *broker_read(struct broker *broker, int place, const char *name, size_t *length);

/* Returns a non-blocking socket that is connected to the unix socket at path, or -1 with errno, as
 * broker_open_log(); EAGAIN: too many connections wait there. EDEADLK: it is one of those of broker_refuse(). */
int broker_connect(struct broker *broker, const char *path);

/* Fills in *st, as stat(2) does. The name "." is the directory itself, if its names may be listed. Returns 0, or -1
 * with errno, as broker_open_log(). */
int broker_stat(struct broker *broker, int place, const char *name, struct stat *st);

/* Returns whether an answer is still to come after a call has failed with ETIMEDOUT, or another thread waits for one.
 */
bool broker_is_late(struct broker *broker);

/* Returns how many calls have failed with ETIMEDOUT or EPIPE, and so have said nothing about a file. */
unsigned broker_missed(struct broker *broker);

/* Returns the names in the directory, sorted, each followed by a NUL, to be freed with free(), and writes their length
 * in bytes to *length. Returns NULL with errno on failure. */
char *broker_list(struct broker *broker, int place, size_t *length);

/* What stat(2) says about a file. */
struct broker_seen {
	uint64_t name;    /* broker_name_hash() of its directory */
	uint64_t version; /* file_version_hash(), with the seed 0 */
	uint64_t inode;   /* file_version_hash_inode() */
	int error;        /* 0, or an errno; then version and inode are 0 */
};

static inline uint64_t broker_name_hash(const char *name) { return slice_hash(0, slice_of(name)); }

static inline struct broker_seen broker_seen_of(const struct stat *st) {
	const struct file_version version = file_version_of(st);
	return (struct broker_seen){.version = file_version_hash(0, &version),
								.inode = file_version_hash_inode(st->st_dev, st->st_ino)};
}

/* Looks, with one request, at fullchain.pem and privkey.pem of up to BROKER_LOOK of the names (fewer if that takes
 * BROKER_LOOK_MS) that broker_list() has returned last for a place of BROKER_PAIRS, from the first one (a number) on.
 * Returns BROKER_PAIR results for each, in this order, to be freed with free(), and the number of names, which may be
 * 0, in *names. Returns NULL with errno on failure. */
struct broker_seen *broker_look(struct broker *broker, int place, unsigned first, size_t *names);

#endif
