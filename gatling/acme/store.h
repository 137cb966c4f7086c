/* store.h - the directory of --acme-dir, which belongs to the process that gets certificates:
 *   uacme/                      uacme's own files: keys, the account, certificates; and beside these
 *   uacme/NAME/authority        the URL of the authority that has issued the certificate
 *   live/NAME/fullchain.pem, privkey.pem   the certificate in use, as for --cert-dir
 *   results/NAME                a line with the result of the last attempt; a line with the number of failures since
 *                               the last success, and when the next attempt is due; "account" is a name, too
 *   asked                       the URL of the authority that gave the results
 *   account                     the URL of the authority that has the account
 *   hook                        the program that uacme calls
 *   lock                        held by the process that writes here */
#ifndef GATLING_ACME_STORE_H
#define GATLING_ACME_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "gatling/http/host.h"

enum { STORE_NAME_MAX = HOST_MAX + 1, STORE_RESULT_MAX = 1024, STORE_FILE_MAX = 64 * 1024 /* bytes, with a NUL */ };

/* Writes the default directory of the store: the service manager's if there is one, else root's, else the user's.
 * Returns false if there is none. */
bool store_default(char path[PATH_MAX]);

/* The functions return 0, or -1 with errno, unless stated otherwise. */

/* Creates the directory and its subdirectories, if they are missing, for their owner alone. */
int store_create(const char *directory);

/* Formats a path in the directory, as printf(3) does. */
void store_path(char path[PATH_MAX], const char *directory, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Read a text file of at most `size` - 1 bytes, and write one, either as a whole or not at all. */
int store_read(const char *path, char *text, size_t size);
int store_write(const char *path, const char *text, int mode);

/* When a certificate begins and ceases to be valid. */
struct store_dates {
	time_t from, to;
};

/* Read the dates of the first certificate in a file, or of the certificate in use for a name. */
int store_dates(const char *path, struct store_dates *dates);
int store_dates_in_use(const char *directory, const char *name, struct store_dates *dates);

/* Prepares a run of uacme for a name, or "" for the account: removes a key that was truncated by a full disk or a
 * crash, which uacme would not replace. Fails with ENOSPC if less than STORE_ROOM is left on the disk. */
enum { STORE_ROOM = 64 * 1024 /* bytes */ };
int store_prepare(const char *directory, const char *name);

/* The result of an attempt. */
struct store_result {
	char text[STORE_RESULT_MAX]; /* a line without its end */
	unsigned failures;
	int64_t due_s; /* when the next attempt is due, since the epoch */
};

/* Sets which authority is asked from now on. Removes the results of another one: they are no reason to wait. */
int store_ask(const char *directory, const char *url);

/* Write and read the result of the last attempt for a name. */
int store_keep(const char *directory, const char *name, const struct store_result *result);
int store_recall(const char *directory, const char *name, struct store_result *result);

/* Record which authority has issued the certificate that uacme has for a name, and return whether it was that one. */
int store_note_authority(const char *directory, const char *name, const char *url);
bool store_is_of(const char *directory, const char *name, const char *url);

/* Puts the certificate that uacme has for a name into use, with its key. */
int store_install(const char *directory, const char *name);

/* Takes the certificate of a name out of use, and removes its result. uacme's own files stay. */
void store_remove(const char *directory, const char *name);

/* Prints the names in the directory with their dates and results. Returns the exit status of the process. */
int store_show(const char *directory);

#endif
