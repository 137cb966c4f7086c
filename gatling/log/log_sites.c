/* log_sites.c - see log_sites.h. */
#include "gatling/log/log_sites.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gatling/base/notice.h"
#include "gatling/base/slice.h"

struct log_sites *log_sites_new(const struct log_file *directory) {
	struct log_sites *s = calloc(1, sizeof *s);
	if (s) s->directory = *directory;
	return s;
}

/* --- the files --- */

/* Returns the entry of a site, or the one that it takes over. Adds the line that this costs to *lost. */
static struct log_site *entry_of(struct log_sites *s, struct slice name, unsigned long *lost) {
	struct log_site *oldest = s->site;
	for (unsigned i = 0; i < s->files; i++) {
		struct log_site *site = &s->site[i];
		if (strncmp(site->name, name.at, name.length) == 0 && strcmp(site->name + name.length, ".log") == 0)
			return site;
		if (site->used < oldest->used) oldest = site;
	}
	if (s->files < LOG_SITES_OPEN) return &s->site[s->files++];
	*lost += log_sink_close(&oldest->sink) != NULL;
	oldest->name[0] = '\0';
	return oldest;
}

/* Returns the open file of a site, or NULL with errno. Adds torn lines that nothing completes to *lost. */
static struct log_sink *sink_of(struct log_sites *s, struct slice name, unsigned long *lost) {
	if (!name.length || name.length > LOG_SITE_MAX) name = SLICE(LOG_NO_SITE);
	struct log_site *site = entry_of(s, name, lost);
	struct log_queue *torn = NULL;
	if (!site->name[0]) {
		*text_copy(text_copy(site->name, name), SLICE(".log")) = '\0';
		site->sink.file = s->directory;
		site->sink.file.name = site->name;
		site->again = true;
	}
	site->used = ++s->uses;
	const bool opened = !site->again || log_sink_reopen(&site->sink, &torn) == 0;
	*lost += torn != NULL;
	if (opened) site->again = false;
	else if (site->sink.file.fd != -1 && notice_due(&s->told))
		notice_line(LEVEL_ERROR, "cannot open %s of %s again, going on with the old file: %s", site->name,
					s->directory.path, log_file_reason(errno));
	return site->sink.file.fd == -1 ? NULL : &site->sink;
}

void log_sites_reopen(struct log_sites *s) {
	for (unsigned i = 0; i < s->files; i++) s->site[i].again = true;
}

void log_sites_close(struct log_sites *s) {
	for (unsigned i = 0; i < s->files; i++) (void)log_sink_close(&s->site[i].sink);
	s->files = 0;
}

/* --- the lines --- */

/* For qsort(3): by name, then by place. */
static int compare(const void *one, const void *other) {
	const struct log_site_line *a = one, *b = other;
	const size_t length = a->name.length < b->name.length ? a->name.length : b->name.length;
	const int order = memcmp(a->name.at, b->name.at, length);
	if (order) return order;
	if (a->name.length != b->name.length) return a->name.length < b->name.length ? -1 : 1;
	return a->text.at < b->text.at ? -1 : 1;
}

/* Writes the lines that were collected. Returns how many could not be written, and sets *error to the last errno. */
static unsigned long write_collected(struct log_sites *s, struct log_queue *of, int *error) {
	unsigned long lost = 0;
	qsort(s->line, s->lines, sizeof *s->line, compare);
	for (unsigned i = 0, end; i < s->lines; i = end) {
		char *at = s->gathered;
		for (end = i; end < s->lines && slice_equal(s->line[end].name, s->line[i].name); end++)
			at = text_copy(at, s->line[end].text);
		struct log_sink *sink = sink_of(s, s->line[i].name, &lost);
		const unsigned long here = sink ? log_sink_write(sink, of, s->gathered, (size_t)(at - s->gathered)) : end - i;
		if (here) *error = errno;
		lost += here;
	}
	s->lines = 0;
	return lost;
}

unsigned long log_sites_write(struct log_sites *s, struct log_queue *of, const char *text, size_t length) {
	struct slice rest = {.at = text, .length = length};
	unsigned long lost = 0;
	int error = 0;
	while (rest.length) {
		const struct slice line = slice_first(rest, slice_until(rest, '\n') + 1);
		const struct slice name = slice_first(line, slice_until(line, '\t'));
		slice_drop(&rest, line.length);
		s->line[s->lines++] = (struct log_site_line){.name = name, .text = slice_rest(line, name.length + 1)};
		if (s->lines == LOG_SITES_LINES) lost += write_collected(s, of, &error);
	}
	lost += write_collected(s, of, &error);
	errno = error;
	return lost;
}
