/* hosts.c - see hosts.h. */
#include "gatling/site/hosts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/files/site_file.h"
#include "gatling/http/host.h"

bool host_has_directory(enum vhosts vhosts, struct slice name) {
	if (!host_normal(name)) return false;
	if (vhosts == VHOSTS_ONLY) return true;
	if (vhosts != VHOSTS_TRY) return false;
	return memchr(name.at, '.', name.length) || memchr(name.at, ':', name.length) ||
		   slice_equal(name, SLICE("localhost"));
}

/* --- those that are there --- */

static bool is_directory(const struct docroot *docroot, const struct dirent *entry) {
	struct stat st;
	if (entry->d_type == DT_REG) return false; /* there may be very many files */
	if (entry->d_type == DT_DIR) return true;  /* what is mounted there may be on a machine that does not answer */
	return docroot_stat(docroot, entry->d_name, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Adds a name. Returns 0 or ENOMEM. */
static int add(struct hosts *hosts, const char *name) {
	if ((hosts->count & (hosts->count - 1)) == 0) { /* it is 0 or a power of two */
		char **larger = realloc(hosts->name, (hosts->count ? 2 * hosts->count : 1) * sizeof *larger);
		if (!larger) return ENOMEM;
		hosts->name = larger;
	}
	if (!(hosts->name[hosts->count] = strdup(name))) return ENOMEM;
	hosts->count++;
	return 0;
}

static int compare(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

int hosts_find(struct hosts *hosts, const struct docroot *docroot, enum vhosts vhosts) {
	*hosts = (struct hosts){0};
	const int fd = docroot_open(docroot, ".", O_DIRECTORY);
	DIR *root = fd == -1 ? NULL : fdopendir(fd);
	int error = root ? 0 : errno;
	for (const struct dirent *entry; root && !error && hosts->count < HOSTS_MAX && (entry = readdir(root));)
		if (host_has_directory(vhosts, slice_of(entry->d_name)) && is_directory(docroot, entry))
			error = add(hosts, entry->d_name);
	if (root) closedir(root);
	else if (fd != -1) close(fd);
	if (hosts->count) qsort(hosts->name, hosts->count, sizeof *hosts->name, compare);
	return error;
}

void hosts_free(struct hosts *hosts) {
	for (unsigned i = 0; i < hosts->count; i++) free(hosts->name[i]);
	free(hosts->name);
	*hosts = (struct hosts){0};
}

/* --- what is said of them --- */

char *hosts_summary(const struct hosts *hosts, size_t column) {
	char *text = NULL;
	size_t size;
	unsigned named = 0;
	FILE *out = hosts->count ? open_memstream(&text, &size) : NULL;
	if (!out) return NULL;
	for (; named < hosts->count && named < HOSTS_NAMED; named++) {
		const unsigned last = named + 1 == hosts->count;
		column += strlen(hosts->name[named]) + 2 * (named > 0);
		if (named && column + (last ? 0 : strlen(" and 65535 others")) > HOSTS_COLUMNS) break;
		fprintf(out, "%s%s", named ? ", " : "", hosts->name[named]);
	}
	const unsigned others = hosts->count - named;
	if (others) fprintf(out, " and %u other%s", others, others == 1 ? "" : "s");
	if (fclose(out) == 0) return text;
	free(text);
	return NULL;
}

void hosts_print(const struct hosts *hosts, const char *prefix) {
	const int indent = (int)strlen(prefix);
	size_t column = 0;
	for (unsigned i = 0; i < hosts->count; i++) {
		const bool last = i + 1 == hosts->count;
		if (column && column + strlen(hosts->name[i]) + 1 + !last > HOSTS_COLUMNS) {
			putchar('\n');
			column = 0;
		}
		column += (size_t)(column ? printf(" ") : printf("%*s", indent, i ? "" : prefix));
		column += (size_t)printf("%s%s", hosts->name[i], last ? "" : ",");
	}
	if (hosts->count) putchar('\n');
}

static bool has_in_default(const struct docroot *docroot, const char *name) {
	char path[64];
	struct stat st;
	snprintf(path, sizeof path, "default/%s", name);
	return docroot_stat(docroot, path, &st) == 0 && S_ISREG(st.st_mode);
}

/* Returns whether default/ has what only the directory of a site has. */
static bool has_default(const struct docroot *docroot) {
	bool has = has_in_default(docroot, "index.html");
	for (size_t i = 0; i < SITE_FILES && !has; i++) has = has_in_default(docroot, site_file_name[i]);
	return has;
}

void hosts_report(const struct docroot *docroot, enum vhosts vhosts) {
	struct hosts hosts;
	if (vhosts == VHOSTS_TRY && has_default(docroot))
		notice(0, "default/: only with -v is it the site of all hosts that have no directory");
	if (vhosts != VHOSTS_ONLY) return;
	if (hosts_find(&hosts, docroot, vhosts) == 0 && !hosts.count)
		notice(0,
			   "no host is served: there is neither a directory with the name of a host, in lower case, nor default/");
	hosts_free(&hosts);
}
