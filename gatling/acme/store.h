/* store.h - the directory of --acme-dir, which belongs to the process that gets certificates:
 *   uacme/                      what uacme keeps: keys, the account, certificates; and beside these
 *   uacme/NAME/authority        the URL of the authority that has given the certificate
 *   live/NAME/fullchain.pem, privkey.pem   what is in use, as --cert-dir wants it
 *   results/NAME                what came of the last attempt, a line; and how many have failed since the last that was
 *                               good, and when the next is due; "account" is a name, too
 *   asked                       the URL of the authority that the results are of
 *   account                     that of the one that has the account
 *   hook                        the program that uacme calls
 *   lock                        held by the process that writes here */
#ifndef GATLING_ACME_STORE_H
#define GATLING_ACME_STORE_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { STORE_NAME_MAX = 256, STORE_RESULT_MAX = 1024, STORE_FILE_MAX = 64 * 1024 /* bytes, with a NUL */ };

/* Writes the default directory of the store: that of the service manager, else of root, else of the user. Returns false
 * if there is none. */
bool store_default(char path[PATH_MAX]);

/* All functions return 0, or -1 with errno, unless they say something else. */

/* Creates what is missing of the directory and its subdirectories, for their owner alone. */
int store_create(const char *directory);

/* Writes a path in the directory, as printf(3). */
void store_path(char path[PATH_MAX], const char *directory, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Reads a text file of at most `size` - 1 bytes, or writes one, so that it is there as a whole or not at all. */
int store_read(const char *path, char *text, size_t size);
int store_write(const char *path, const char *text, int mode);

/* When a certificate begins and ceases to be valid. */
struct store_dates {
	time_t from, to;
};

/* Finds out the dates of the first certificate in a file, or of the one in use for a name. */
int store_dates(const char *path, struct store_dates *dates);
int store_dates_in_use(const char *directory, const char *name, struct store_dates *dates);

/* Makes ready for a run of uacme for a name, or "" for the account: removes a key that a full disk, or the end of the
 * machine, has cut off, which uacme would not replace. -1 with ENOSPC: less than STORE_ROOM is left on the disk. */
enum { STORE_ROOM = 64 * 1024 /* bytes */ };
int store_prepare(const char *directory, const char *name);

/* What came of an attempt. */
struct store_result {
	char text[STORE_RESULT_MAX]; /* a line without its end */
	unsigned failures;
	int64_t due_s; /* since the epoch */
};

/* Says which authority is asked from now on. Results of another one are forgotten: they are no reason to wait. */
int store_ask(const char *directory, const char *url);

int store_keep(const char *directory, const char *name, const struct store_result *result);
int store_recall(const char *directory, const char *name, struct store_result *result);

/* Keeps, or asks, whether what uacme has for a name is of an authority. */
int store_note_authority(const char *directory, const char *name, const char *url);
bool store_is_of(const char *directory, const char *name, const char *url);

/* Takes up the certificate that uacme has for a name, with its key. */
int store_install(const char *directory, const char *name);

/* Takes the certificate of a name out of use. What uacme keeps stays. */
void store_remove(const char *directory, const char *name);

/* Prints the names in the directory with their dates and results. Returns the exit status of the process. */
int store_show(const char *directory);

#endif
