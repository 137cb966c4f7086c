/* opener.h - a process that stays outside the document root, as the user who started the server, and reopens files that
 * the command line names: certificates that have changed, and the log after it was renamed. Another such process
 * connects to the unix sockets of upstreams, with the rights of the user who serves. Both open files by name in
 * directories that were named before they started, and never pass on a directory, so that the server itself has no way
 * out of the root. Several threads may use one opener. */
#ifndef GATLING_OPENER_OPENER_H
#define GATLING_OPENER_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gatling/opener/opener_rule.h"

struct account; /* sandbox/account.h */
struct opener;

/* Returns an opener, or NULL without memory. */
struct opener *opener_new(void);

/* Adds a place: the directory path or, for OPENER_FILE, OPENER_LOG and OPENER_SOCKET, the directory of the file path.
 * That of sockets need not exist yet. Call it before opener_start(). The directory is opened by its path for each
 * request, since another one may have taken its place. But that of OPENER_PEMS is opened only here, since it is the
 * root, in which the server stays; and that of OPENER_LOG, since users who may rename a directory above it must not
 * choose where root writes. The places of one opener are all for sockets, or none is. *name becomes the name of the
 * file, within path, which must stay valid. Returns the number of the place, or -1 with errno. */
int opener_add(struct opener *opener, const char *path, enum opener_rule rule, const char **name);

/* Has the process never connect to the socket file that is at path now, whatever leads to it: a symlink, a hard link.
 * Call it before opener_start(). Returns 0, or -1 with errno. */
int opener_refuse(struct opener *opener, const char *path);

/* Starts the process, if there are places, and closes the directories in this one. sandbox: limit its system calls.
 * user: whose rights it has from then on; NULL: those of the user who starts it. No other thread may run yet. Returns
 * 0, or -1 with errno. */
int opener_start(struct opener *opener, bool sandbox, const struct account *user);

/* Returns the descriptor of the socket to the process, which a thread with a descriptor table of its own needs; -1:
 * none. */
int opener_channel(const struct opener *opener);

/* Ends the process, when nothing more is to be opened. Waits for its end, unless its answer is late. */
void opener_stop(struct opener *opener);
void opener_free(struct opener *opener); /* NULL is allowed */

/* Opens a file in a place. All but a log must be regular files. Returns the descriptor, or -1 with errno. EPERM: the
 * name is not allowed in this place. ESTALE: the path of a log's directory leads to another directory now. EPIPE: the
 * process has ended. ETIMEDOUT: it has not answered for OPENER_WAIT_MS; until that answer comes, each call fails so at
 * once. */
int opener_open(struct opener *opener, int place, const char *name);

/* Returns a non-blocking socket that is connected to the unix socket at path, or -1 with errno, as opener_open();
 * EAGAIN: too many connections wait there. EDEADLK: it is one of those of opener_refuse(). */
int opener_connect(struct opener *opener, const char *path);

/* Fills in *st, as stat(2) does. The name "." is the directory itself, if its names may be listed. Returns 0, or -1
 * with errno, as opener_open(). */
int opener_stat(struct opener *opener, int place, const char *name, struct stat *st);

/* Returns whether an answer is still to come after a call has failed with ETIMEDOUT. */
bool opener_is_late(struct opener *opener);

/* Returns the names in the directory, sorted, each followed by a NUL, to be freed with free(), and writes their length
 * in bytes to *length. Returns NULL with errno on failure. */
char *opener_list(struct opener *opener, int place, size_t *length);

#endif
