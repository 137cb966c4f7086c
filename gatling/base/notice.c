/* notice.c - see notice.h. */
#include "gatling/base/notice.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/hash.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* guarded by the mutex */
static uint64_t printed[NOTICES_MAX]; /* hashes */
static unsigned count;
static char last[NOTICE_TEXT_MAX]; /* of notice_cannot() */
/* does not change once there are threads */
static bool checks, to_journal;

static bool is_new(uint64_t key) {
	bool before = false;
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < NOTICES_MAX && !before; i++) before = printed[i] == key;
	if (!before) printed[count++ % NOTICES_MAX] = key;
	pthread_mutex_unlock(&mutex);
	return !before;
}

void notice_open(void) {
	const char *journal = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;
	if (!journal || fstat(STDERR_FILENO, &st) == -1) return;
	snprintf(own, sizeof own, "%llu:%llu", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino);
	to_journal = strcmp(journal, own) == 0;
}

void notice_line(enum notice_level level, const char *format, ...) {
	char text[2 * NOTICE_TEXT_MAX], before[8] = "";
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	for (char *c = text; *c; c++)
		if ((*c >= 0 && *c < ' ') || *c == 127) *c = '?'; /* one line stays one */
	if (to_journal) snprintf(before, sizeof before, "<%d>", level);
	fprintf(stderr, "%sgatling: %s\n", before, text);
}

bool notice(uint64_t state, const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!is_new(hash_octets(state, slice_of(text)))) return false;
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~') *c = '?';
	if (checks) printf("%s\n", text);
	else notice_line(LEVEL_WARNING, "%s", text);
	return true;
}

bool notice_due(notice_time *next) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	long long due = atomic_load(next);
	return now.tv_sec >= due && atomic_compare_exchange_strong(next, &due, now.tv_sec + NOTICE_AGAIN_S);
}

int notice_cannot(const char *action, const char *name, const char *reason) {
	pthread_mutex_lock(&mutex);
	snprintf(last, sizeof last, "cannot %s%s%s: %s", action, name ? " " : "", name ? name : "", reason);
	notice_line(LEVEL_ERROR, "%s", last);
	pthread_mutex_unlock(&mutex);
	return -1;
}

void notice_last(char *text, size_t size) {
	pthread_mutex_lock(&mutex);
	snprintf(text, size, "%s", last);
	pthread_mutex_unlock(&mutex);
}

void notice_check(void) { checks = true; }
bool notice_checks(void) { return checks; }
unsigned notices(void) { return count; }
