/* listing.c - see listing.h. */
#include "gatling/listing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/path.h"
#include "gatling/platform.h"

struct item {
	char *name;
	bool directory;
	off_t size;
	time_t modified;
};

struct items {
	struct item *item;
	size_t count;
	bool more; /* than LISTING_MAX */
};

static int by_kind_and_name(const void *a, const void *b) {
	const struct item *x = a, *y = b;
	if (x->directory != y->directory) return x->directory ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Whether it would be served, and if so what it is. A link may lead where the cache does not go: ask it. */
static bool inspect(const struct cache *cache, int directory, const char *path, const char *name, struct item *item) {
	struct stat st;
	if (fstatat(directory, name, &st, AT_SYMLINK_NOFOLLOW) == -1) return false;
	if (S_ISLNK(st.st_mode)) {
		char *target;
		if (asprintf(&target, "%s/%s", path, name) == -1) return false;
		int failed = cache_stat(cache, target, &st);
		free(target);
		if (failed) return false;
	}
	item->directory = S_ISDIR(st.st_mode);
	item->size = st.st_size;
	item->modified = st.PLATFORM_MTIME.tv_sec;
	return (item->directory || S_ISREG(st.st_mode)) && st.st_mode & S_IROTH;
}

static int add(struct items *list, size_t *size, struct item item, const char *name) {
	if (list->count == *size) {
		*size = *size ? 2 * *size : 64;
		struct item *grown = realloc(list->item, *size * sizeof *grown);
		if (!grown) return ENOMEM;
		list->item = grown;
	}
	item.name = strdup(name);
	if (!item.name) return ENOMEM;
	list->item[list->count++] = item;
	return 0;
}

static int collect(const struct cache *cache, DIR *directory, const char *path, struct items *list) {
	size_t size = 0;
	int error = 0;
	while (!error) {
		struct item item;
		errno = 0;
		struct dirent *d = readdir(directory);
		if (!d) return errno;
		struct slice name = {.at = d->d_name, .length = strlen(d->d_name)};
		if (name.at[0] == '.' || !path_allows(name) || !inspect(cache, dirfd(directory), path, d->d_name, &item))
			continue;
		if (list->count == LISTING_MAX) {
			list->more = true;
			break;
		}
		error = add(list, &size, item, d->d_name);
	}
	return error;
}

static void print_escaped(FILE *out, struct slice text) {
	for (size_t i = 0; i < text.length; i++) {
		switch (text.at[i]) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: putc(text.at[i], out);
		}
	}
}

static void print_item(FILE *out, const struct item *item) {
	struct slice name = {.at = item->name, .length = strlen(item->name)};
	char href[3 * NAME_MAX + 1];
	const char *slash = item->directory ? "/" : "";
	size_t length = name.length <= NAME_MAX ? path_encode(name, href) : 0;
	struct tm tm;
	char date[32] = "";
	if (gmtime_r(&item->modified, &tm)) strftime(date, sizeof date, "%F %R", &tm);
	/* "./" keeps a name with a colon from being read as a scheme */
	fprintf(out, "<tr><td><a href=\"./%.*s%s\">", (int)length, href, slash);
	print_escaped(out, name);
	fprintf(out, "%s</a><td>", slash);
	if (!item->directory) fprintf(out, "%lld", (long long)item->size);
	fprintf(out, "<td>%s\n", date);
}

static void print_page(FILE *out, const struct items *list, struct slice title) {
	fputs("<!doctype html>\n<html lang=en><meta charset=utf-8>\n"
		  "<meta name=viewport content=\"width=device-width\">\n<title>/",
		  out);
	print_escaped(out, title);
	fputs("</title>\n<style>:root{color-scheme:light dark}body{font-family:sans-serif}"
		  "td{padding:.1em 1em}td:nth-child(2){text-align:right}</style>\n<h1>/",
		  out);
	print_escaped(out, title);
	fputs("</h1>\n<table>\n", out);
	if (title.length) fputs("<tr><td><a href=\"../\">../</a><td><td>\n", out);
	for (size_t i = 0; i < list->count; i++) print_item(out, &list->item[i]);
	fputs("</table>\n", out);
	if (list->more) fprintf(out, "<p>Only the first %d entries found are shown.\n", LISTING_MAX);
}

int listing_make(const struct cache *cache, const char *path, struct slice title, char **html, size_t *length) {
	struct items list = {0};
	struct stat st;
	FILE *out = NULL;
	int error = 0;
	*html = NULL;
	int fd = cache_open(cache, path, O_DIRECTORY);
	if (fd == -1) return errno;
	DIR *directory = fdopendir(fd);
	if (!directory) {
		error = errno;
		close(fd);
		return error;
	}
	if (fstat(fd, &st) == -1) error = errno;
	else if (!(st.st_mode & S_IROTH)) error = EACCES;
	else error = collect(cache, directory, path, &list);
	if (!error && !(out = open_memstream(html, length))) error = ENOMEM;
	if (!error) {
		if (list.count) qsort(list.item, list.count, sizeof *list.item, by_kind_and_name);
		print_page(out, &list, title);
	}
	if (out && fclose(out) != 0) error = ENOMEM;
	if (error) {
		free(*html);
		*html = NULL;
	}
	for (size_t i = 0; i < list.count; i++) free(list.item[i].name);
	free(list.item);
	closedir(directory);
	return error;
}
