/* error_log.c - see error_log.h. */
#include "gatling/log/error_log.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/log/access.h"

static void write_line(void *owner, enum notice_level level, const char *text) {
	struct error_log *e = owner;
	char line[3 * NOTICE_TEXT_MAX], when[ACCESS_DATE_MAX];
	access_date(when, LOG_JSON, time(NULL));
	int length = snprintf(line, sizeof line, "%s %s %s\n", when, notice_level_name[level], text);
	struct slice whole = {.at = line, .length = (size_t)length};
	if (e->queue) log_say(e->queue, slice_first(whole, whole.length - 1));
	else (void)!write(e->file.fd, whole.at, whole.length); /* stderr has the line, too */
}

void error_log_open(struct error_log *e) { notice_to(write_line, e); }

int error_log_start(struct error_log *e) {
	e->log = log_start(&e->file, false);
	if (!e->log) return -1;
	e->queue = log_queue_new(e->log);
	return e->queue ? 0 : -1;
}

void error_log_stop(struct error_log *e) {
	notice_to(NULL, NULL);
	if (e->log) log_stop(e->log);
	else log_file_close(&e->file);
	*e = (struct error_log){.file = LOG_FILE_STDOUT};
}
