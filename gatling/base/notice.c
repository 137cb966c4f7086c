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

const char *const notice_level_name[] = {
	[LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning", [LEVEL_NOTICE] = "notice", [LEVEL_INFO] = "info"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* guarded by the mutex */
static uint64_t printed[NOTICES_MAX]; /* hashes */
static unsigned count;
static char last[NOTICE_TEXT_MAX]; /* of notice_cannot() */
static notice_sink *sink;
static void *sink_owner;
static bool silent; /* on stderr, while there is a sink */
static struct kind {
	const char *format;
	time_t second;
	unsigned lines, left_out; /* in that second */
	char begin[48];           /* of the first that was left out */
} kinds[NOTICE_KINDS];
/* does not change once there are threads */
static bool checks, to_journal;
static enum notice_level threshold = LEVEL_INFO;

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

void notice_threshold(enum notice_level level) { threshold = level; }

void notice_to(notice_sink *to, void *owner) {
	pthread_mutex_lock(&mutex);
	sink = to;
	sink_owner = owner;
	silent = false;
	pthread_mutex_unlock(&mutex);
}

void notice_echo(bool echo) {
	pthread_mutex_lock(&mutex);
	silent = !echo;
	pthread_mutex_unlock(&mutex);
}

/* --- lines; called with the mutex locked --- */

static void print(enum notice_level level, const char *text) {
	char before[8] = "";
	if (to_journal) snprintf(before, sizeof before, "<%d>", level);
	if (!sink || !silent) fprintf(stderr, "%sgatling: %s\n", before, text);
	if (sink) sink(sink_owner, level, text);
}

/* Returns whether some were left out in this second. */
static bool report_left_out(time_t now) {
	bool more = false;
	for (struct kind *k = kinds; k < kinds + NOTICE_KINDS; k++) {
		char text[NOTICE_TEXT_MAX];
		more |= k->left_out && k->second == now;
		if (!k->left_out || k->second == now) continue;
		snprintf(text, sizeof text, "%u more lines were left out that begin like \"%s\"", k->left_out, k->begin);
		k->left_out = 0;
		print(LEVEL_WARNING, text);
	}
	return more;
}

/* Returns whether one more line of that kind may be printed in this second. */
static bool take_line(const char *format, const char *text, time_t now) {
	struct kind *k = kinds;
	while (k < kinds + NOTICE_KINDS - 1 && k->format && k->format != format) k++;
	k->format = format;
	if (k->second != now) k->lines = 0;
	k->second = now;
	if (k->lines++ < NOTICE_BURST) return true;
	if (!k->left_out++) snprintf(k->begin, sizeof k->begin, "%s", text);
	return false;
}

static time_t clock_s(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

static void say(enum notice_level level, const char *format, const char *text) {
	time_t now = clock_s();
	if (level > threshold) return;
	pthread_mutex_lock(&mutex);
	(void)report_left_out(now);
	if (take_line(format, text, now)) print(level, text);
	pthread_mutex_unlock(&mutex);
}

/* --- lines; called without it --- */

bool notice_tidy(void) {
	pthread_mutex_lock(&mutex);
	bool more = report_left_out(clock_s());
	pthread_mutex_unlock(&mutex);
	return more;
}

void notice_line(enum notice_level level, const char *format, ...) {
	char text[2 * NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	for (char *c = text; *c; c++)
		if ((*c >= 0 && *c < ' ') || *c == 127) *c = '?'; /* one line stays one */
	say(level, format, text);
}

bool notice(uint64_t state, const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!is_new(hash_octets(state * UINT64_C(0x9e3779b97f4a7c15), slice_of(text))))
		return false; /* 2^64 / golden ratio */
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~') *c = '?';
	if (checks) printf("%s\n", text);
	else say(LEVEL_WARNING, format, text);
	return true;
}

bool notice_due(notice_time *next) {
	time_t now = clock_s();
	long long due = atomic_load(next);
	return now >= due && atomic_compare_exchange_strong(next, &due, now + NOTICE_AGAIN_S);
}

int notice_cannot(const char *action, const char *name, const char *reason) {
	char text[NOTICE_TEXT_MAX];
	snprintf(text, sizeof text, "cannot %s%s%s: %s", action, name ? " " : "", name ? name : "", reason);
	for (char *c = text; *c; c++)
		if ((*c >= 0 && *c < ' ') || *c == 127) *c = '?';
	pthread_mutex_lock(&mutex);
	memcpy(last, text, sizeof last);
	pthread_mutex_unlock(&mutex);
	say(LEVEL_ERROR, action, text);
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
