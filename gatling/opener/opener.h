/* opener.h - a process that stays outside the document root, as the user who started the server, and opens the files
 * that the command line names again: certificates that change, the log after it was renamed. Another such process
 * connects to the unix sockets of upstreams. They open files by name in directories that were named before they
 * started, and never hand over a directory: so the server itself has no way out of the root. Several threads may ask
 * one. */
#ifndef GATLING_OPENER_OPENER_H
#define GATLING_OPENER_OPENER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "gatling/opener/opener_rule.h"

struct opener;

/* Returns NULL: ENOMEM. */
struct opener *opener_new(void);

/* Returns the name of a path of a file in the directory, which may end in '/'; NULL: it is not there. */
const char *opener_name_in(const char *directory, const char *path);

/* Adds the directory `path`, which need not exist yet for OPENER_SOCKETS, or that of a file for OPENER_FILE and
 * OPENER_LOG, before opener_start(). The path is opened each time, since another directory may have taken its place.
 * That of OPENER_PEMS is opened only now, since it is the root, in which the server stays; and that of OPENER_LOG,
 * since users who may rename a directory above it must not choose where root writes. *name: of the file, in the path,
 * which must last. Returns the number of the place; -1 with errno. */
int opener_add(struct opener *opener, const char *path, enum opener_rule rule, const char **name);

/* Starts the process and closes the directories in this one. sandbox: limit its system calls. No other thread may run
 * yet. Without places it starts none. Returns 0, or -1 with errno. */
int opener_start(struct opener *opener, bool sandbox);

/* Returns the descriptor over which the process is asked, which a thread with descriptors of its own needs; -1: none.
 */
int opener_channel(const struct opener *opener);

/* Ends the process, and waits for that unless it is late: nothing more is to be opened. */
void opener_stop(struct opener *opener);
void opener_free(struct opener *opener); /* NULL is allowed */

/* Opens a file, as open(2); all but a log must be regular files. Returns -1 with errno; EPERM: the name is not allowed
 * in this place; ESTALE: the directory of a log is not at its path any more, but another one; EPIPE: the process has
 * ended; ETIMEDOUT: it has not answered for OPENER_WAIT_MS, and so will every call fail at once until that answer has
 * come. */
int opener_open(struct opener *opener, int place, const char *name);

/* Connects to the unix socket at the path, which does not block afterwards. Returns as opener_open(); EAGAIN: too many
 * connections wait there. */
int opener_connect(struct opener *opener, const char *path);

/* Fills in *st, as stat(2). "." is the place itself, if its names may be listed. Returns as opener_open(). */
int opener_stat(struct opener *opener, int place, const char *name, struct stat *st);

/* Returns whether an answer is still to come, after a call failed with ETIMEDOUT. */
bool opener_is_late(struct opener *opener);

/* Returns the names in the directory, sorted, each followed by a NUL, to be freed with free(), and writes their length
 * in bytes to *length. NULL with errno. */
char *opener_list(struct opener *opener, int place, size_t *length);

#endif
