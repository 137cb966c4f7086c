/* log_sites.h - a log with a file for each site, in one directory. For the thread of the log. */
#ifndef GATLING_LOG_LOG_SITES_H
#define GATLING_LOG_LOG_SITES_H

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/log/log_sink.h"

enum {
	LOG_SITES_LINES = 8192, /* lines that are sorted at a time */
	LOG_SITES_OPEN = 64,    /* files that are open at a time; the one that was used longest ago makes room */
	LOG_SITE_MAX = 300      /* bytes of the name of a site; longer ones have the file of no site */
};

/* The name of the file for requests that no site of a host has answered. */
#define LOG_NO_SITE "default"

struct log_sites {
	struct log_file directory; /* its broker, place and path */
	unsigned files;
	notice_time told; /* when it may be said again that a file cannot be opened */
	uint64_t uses;    /* counts those of the files */
	unsigned lines;
	struct log_site_line {
		struct slice name, text;
	} line[LOG_SITES_LINES];
	char gathered[LOG_REST_MAX];
	struct log_site {
		struct log_sink sink;
		uint64_t used;
		bool again; /* it has to be opened again */
		char name[LOG_SITE_MAX + sizeof ".log"];
	} site[LOG_SITES_OPEN];
};

/* Returns NULL without memory. directory: of log_file_place_directory(). To be freed with free() after
 * log_sites_close(). */
struct log_sites *log_sites_new(const struct log_file *directory);

/* Writes lines of a queue to the files of their sites: NAME.log. A line begins with the name and a tab, which are not
 * written; lines of one site stay in their order. Returns how many lines could not be written, with errno. */
unsigned long log_sites_write(struct log_sites *sites, struct log_queue *of, const char *text, size_t length);

/* Has each file opened again before the next line for it: it may have been renamed. */
void log_sites_reopen(struct log_sites *sites);

void log_sites_close(struct log_sites *sites);

#endif
