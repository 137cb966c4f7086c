/* store.c - see store.h. */
#include "gatling/acme/store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/base/notice.h"

enum { OWN_DIRECTORY = 0700, OWN_FILE = 0600 };

bool store_default(char path[PATH_MAX]) {
	const char *managed = getenv("STATE_DIRECTORY"), *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (managed && *managed == '/') snprintf(path, PATH_MAX, "%.*s/acme", (int)strcspn(managed, ":"), managed);
	else if (geteuid() == 0) snprintf(path, PATH_MAX, "/var/lib/gatling/acme");
	else if (state && *state == '/') snprintf(path, PATH_MAX, "%s/gatling/acme", state);
	else if (home && *home == '/') snprintf(path, PATH_MAX, "%s/.local/state/gatling/acme", home);
	else return false;
	return true;
}

void store_path(char path[PATH_MAX], const char *directory, const char *format, ...) {
	va_list arguments;
	size_t used = (size_t)snprintf(path, PATH_MAX, "%s/", directory);
	if (used >= PATH_MAX) return; /* cut off: store_create() refuses such a directory */
	va_start(arguments, format);
	vsnprintf(path + used, PATH_MAX - used, format, arguments);
	va_end(arguments);
}

static int create(const char *path) { return mkdir(path, OWN_DIRECTORY) == -1 && errno != EEXIST ? -1 : 0; }

/* Creates a directory, and missing ones above it. */
static int create_all(const char *directory) {
	char path[PATH_MAX];
	snprintf(path, sizeof path, "%s", directory);
	for (char *slash = path + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
		*slash = '\0';
		if (mkdir(path, 0755) == -1 && errno != EEXIST) return -1;
	}
	return create(path);
}

int store_create(const char *directory) {
	static const char *const below[] = {"uacme", "live", "results"};
	char path[PATH_MAX];
	if (strlen(directory) > PATH_MAX - 2 * STORE_NAME_MAX) {
		errno = ENAMETOOLONG;
		return -1;
	}
	if (create_all(directory) == -1) return -1;
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		store_path(path, directory, "%s", below[i]);
		if (create(path) == -1) return -1;
	}
	return access(path, W_OK | X_OK);
}

int store_read(const char *path, char *text, size_t size) {
	struct stat st;
	char *found = file_load(open(path, O_RDONLY | O_CLOEXEC), size - 1, &st);
	if (!found) return -1;
	memcpy(text, found, (size_t)st.st_size + 1);
	free(found);
	return 0;
}

/* Writes a whole file, and flushes it to the disk. */
static int fill(int fd, const char *text, size_t length) {
	while (length) {
		ssize_t n = write(fd, text, length);
		if (n == -1 && errno != EINTR) return -1;
		if (n > 0) text += n, length -= (size_t)n;
	}
	return fsync(fd);
}

int store_write(const char *path, const char *text, int mode) {
	char fresh[PATH_MAX + 8];
	const char *slash = strrchr(path, '/');
	const int directory = slash ? (int)(slash + 1 - path) : 0;
	snprintf(fresh, sizeof fresh, "%.*s.%s.tmp", directory, path, path + directory);
	int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (fd == -1) return -1;
	int result = fill(fd, text, strlen(text)), error = errno;
	if (close(fd) == -1 && result == 0) result = -1, error = errno;
	if (result == 0 && rename(fresh, path) == 0) return 0;
	if (result == 0) error = errno;
	(void)unlink(fresh);
	errno = error;
	return -1;
}

/* Returns seconds since the epoch, or -1 if there is no such time. */
static time_t seconds(const ASN1_TIME *time) {
	struct tm tm = {0};
	return ASN1_TIME_to_tm(time, &tm) ? timegm(&tm) : -1;
}

int store_dates(const char *path, struct store_dates *dates) {
	char text[STORE_FILE_MAX];
	if (store_read(path, text, sizeof text) == -1) return -1;
	BIO *memory = BIO_new_mem_buf(text, -1);
	X509 *certificate = memory ? PEM_read_bio_X509(memory, NULL, NULL, NULL) : NULL;
	BIO_free(memory);
	ERR_clear_error();
	errno = EINVAL;
	if (!certificate) return -1;
	*dates = (struct store_dates){.from = seconds(X509_get0_notBefore(certificate)),
								  .to = seconds(X509_get0_notAfter(certificate))};
	X509_free(certificate);
	return dates->from == -1 || dates->to == -1 ? -1 : 0;
}

int store_dates_in_use(const char *directory, const char *name, struct store_dates *dates) {
	char path[PATH_MAX];
	store_path(path, directory, "live/%s/fullchain.pem", name);
	return store_dates(path, dates);
}

static bool holds_key(const char *path) {
	char text[STORE_FILE_MAX];
	if (store_read(path, text, sizeof text) == -1) return errno != EFBIG && errno != EINVAL;
	BIO *memory = BIO_new_mem_buf(text, -1);
	EVP_PKEY *key = memory ? PEM_read_bio_PrivateKey(memory, NULL, NULL, NULL) : NULL;
	bool holds = key || !memory;
	EVP_PKEY_free(key);
	BIO_free(memory);
	ERR_clear_error();
	return holds;
}

int store_prepare(const char *directory, const char *name) {
	char path[PATH_MAX];
	struct statvfs disk;
	store_path(path, directory, "uacme/private/%s%skey.pem", name, *name ? "/" : "");
	if (!holds_key(path) && unlink(path) == -1) return -1;
	errno = ENOSPC;
	return statvfs(directory, &disk) == 0 && disk.f_bavail * disk.f_frsize < STORE_ROOM ? -1 : 0;
}

/* Copies a file, unless the copy is there already. */
static int copy(const char *from, const char *to) {
	char text[STORE_FILE_MAX], old[STORE_FILE_MAX];
	if (store_read(from, text, sizeof text) == -1) return -1;
	if (store_read(to, old, sizeof old) == 0 && strcmp(text, old) == 0) return 0;
	return store_write(to, text, OWN_FILE);
}

/* Copies the key first: the server loads files only when they have not changed for a while, and takes only pairs that
 * match. */
int store_install(const char *directory, const char *name) {
	char from[PATH_MAX], to[PATH_MAX];
	store_path(to, directory, "live/%s", name);
	if (create(to) == -1) return -1;
	store_path(from, directory, "uacme/private/%s/key.pem", name);
	store_path(to, directory, "live/%s/privkey.pem", name);
	if (copy(from, to) == -1) return -1;
	store_path(from, directory, "uacme/%s/cert.pem", name);
	store_path(to, directory, "live/%s/fullchain.pem", name);
	return copy(from, to);
}

void store_remove(const char *directory, const char *name) {
	static const char *const files[] = {"live/%s/fullchain.pem", "live/%s/privkey.pem", "live/%s", "results/%s"};
	char path[PATH_MAX];
	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		store_path(path, directory, files[i], name);
		(void)remove(path);
	}
}

/* --- results --- */

int store_keep(const char *directory, const char *name, const struct store_result *r) {
	char path[PATH_MAX], text[STORE_RESULT_MAX + 64];
	store_path(path, directory, "results/%s", name);
	snprintf(text, sizeof text, "%s\n%u %lld\n", r->text, r->failures, (long long)r->due_s);
	return store_write(path, text, OWN_FILE);
}

int store_recall(const char *directory, const char *name, struct store_result *r) {
	char path[PATH_MAX], text[STORE_RESULT_MAX + 64];
	*r = (struct store_result){.failures = 0};
	store_path(path, directory, "results/%s", name);
	if (store_read(path, text, sizeof text) == -1) return -1;
	char *numbers = text + strcspn(text, "\n");
	if (*numbers) {
		*numbers++ = '\0';
		r->failures = (unsigned)strtoul(numbers, &numbers, 10);
		r->due_s = strtoll(numbers, NULL, 10);
	}
	snprintf(r->text, sizeof r->text, "%.*s", STORE_RESULT_MAX - 1, text);
	return 0;
}

int store_ask(const char *directory, const char *url) {
	char path[PATH_MAX], last[STORE_RESULT_MAX];
	store_path(path, directory, "asked");
	if (store_read(path, last, sizeof last) == 0 && strcmp(last, url) == 0) return 0;
	char results[PATH_MAX];
	store_path(results, directory, "results");
	DIR *all = opendir(results);
	for (const struct dirent *entry; all && (entry = readdir(all));)
		if (*entry->d_name != '.') (void)unlinkat(dirfd(all), entry->d_name, 0);
	if (all) closedir(all);
	return store_write(path, url, OWN_FILE);
}

int store_note_authority(const char *directory, const char *name, const char *url) {
	char path[PATH_MAX];
	store_path(path, directory, "uacme/%s/authority", name);
	return store_write(path, url, OWN_FILE);
}

bool store_is_of(const char *directory, const char *name, const char *url) {
	char path[PATH_MAX], text[STORE_RESULT_MAX];
	store_path(path, directory, "uacme/%s/authority", name);
	return store_read(path, text, sizeof text) == 0 && strcmp(text, url) == 0;
}

/* --- showing --- */

static int visible(const struct dirent *d) { return *d->d_name != '.'; }

static void show(const char *directory, const char *name) {
	char date[32] = "-";
	struct store_dates dates;
	struct store_result result;
	if (store_dates_in_use(directory, name, &dates) == 0) strftime(date, sizeof date, "%F %H:%M", gmtime(&dates.to));
	if (store_recall(directory, name, &result) == -1) snprintf(result.text, sizeof result.text, "%s", strerror(errno));
	printf("%-30s  %-16s  %s\n", name, date, result.text);
}

int store_show(const char *directory) {
	char path[PATH_MAX];
	struct dirent **entry;
	store_path(path, directory, "results");
	int count = scandir(path, &entry, visible, alphasort);
	if (count == -1) {
		(void)notice_cannot("show the certificates in", directory, strerror(errno));
		return 1;
	}
	printf("%-30s  %-16s  %s\n", "NAME", "VALID UNTIL, UTC", "LAST RESULT");
	for (int i = 0; i < count; free(entry[i++])) show(directory, entry[i]->d_name);
	free(entry);
	return 0;
}
