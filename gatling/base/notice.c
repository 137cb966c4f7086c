/* notice.c - see notice.h. */
#include "gatling/base/notice.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/slice.h"

const char *const notice_level_name[] = {
	[LEVEL_ERROR] = "error", [LEVEL_WARNING] = "warning", [LEVEL_NOTICE] = "notice", [LEVEL_INFO] = "info"};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
/* guarded by the mutex, which no thread holds while it prints, since that may take long */
static uint64_t printed[NOTICES_MAX]; /* hashes of notices */
static unsigned count;
static char last[NOTICE_TEXT_MAX]; /* the last line of notice_cannot() */
static struct kind {
	const char *format;
	time_t second;
	unsigned lines, left_out; /* in that second */
	char begin[48];           /* of the first line that was left out */
} kinds[NOTICE_KINDS];

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
/* guarded by `output` */
static notice_sink *sink;
static void *sink_owner;
static bool silent;  /* lines do not go to stderr while there is a sink */
static bool serving; /* lines are left out if stderr has no room */

/* these do not change once there are threads */
static bool checks, to_journal;
static enum notice_level threshold = LEVEL_INFO;

/* Returns whether a notice was printed before; if not, remembers it. */
static bool was_printed(uint64_t key) {
	bool before = false;
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < NOTICES_MAX && !before; i++) before = printed[i] == key;
	if (!before) printed[count++ % NOTICES_MAX] = key;
	pthread_mutex_unlock(&mutex);
	return before;
}

/* Forgets a notice that was left out, so that it is printed when it comes again. */
static void forget_printed(uint64_t key) {
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < NOTICES_MAX; i++)
		if (printed[i] == key) printed[i] = 0;
	pthread_mutex_unlock(&mutex);
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
	pthread_mutex_lock(&output);
	sink = to;
	sink_owner = owner;
	silent = false;
	pthread_mutex_unlock(&output);
}

void notice_echo(bool echo) {
	pthread_mutex_lock(&output);
	silent = !echo;
	pthread_mutex_unlock(&output);
}

void notice_serving(void) {
	pthread_mutex_lock(&output);
	serving = true;
	pthread_mutex_unlock(&output);
}

/* --- lines --- */

/* Returns whether lines go to stderr. The caller holds `output`. */
static bool on_stderr(void) { return !sink || !silent; }

/* Returns whether a line may be printed: once the server runs, only if stderr takes it at once, since a pipe may have
 * no reader, and a terminal may be stopped. The caller holds `output`. */
static bool stderr_has_room(void) {
	struct pollfd p = {.fd = STDERR_FILENO, .events = POLLOUT};
	return !serving || poll(&p, 1, 0) != 0;
}

/* Returns whether there is room for a line. The caller holds `output`. */
static bool has_room(void) { return !on_stderr() || stderr_has_room(); }

/* Prints a line on stderr, at once, so that no line of another process comes into it: fprintf(3) of musl writes it in
 * parts. The caller holds `output`. */
static void print_on_stderr(enum notice_level level, const char *text) {
	char before[8] = "", line[NOTICE_TEXT_MAX + 32];
	if (to_journal) snprintf(before, sizeof before, "<%d>", level);
	snprintf(line, sizeof line, "%sgatling: %s\n", before, text);
	(void)fputs(line, stderr);
}

/* Prints a line on stderr, and passes it to the sink. Returns false, and does neither, if there is no room. */
static bool print(enum notice_level level, const char *text) {
	pthread_mutex_lock(&output);
	const bool room = has_room();
	if (room && on_stderr()) print_on_stderr(level, text);
	if (room && sink) sink(sink_owner, level, text);
	pthread_mutex_unlock(&output);
	return room;
}

static time_t clock_s(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec;
}

/* Finds a kind of which lines were left out before this second. Writes the line about them to text (NOTICE_TEXT_MAX
 * bytes), and moves their count to *left_out. *more: some were left out in this second. Returns the kind, or NULL. */
static struct kind *take_left_out(time_t now, char *text, unsigned *left_out, bool *more) {
	struct kind *found = NULL;
	*more = false;
	pthread_mutex_lock(&mutex);
	for (struct kind *k = kinds; k < kinds + NOTICE_KINDS; k++) {
		*more |= k->left_out && k->second == now;
		if (k->left_out && k->second != now) found = k;
	}
	if (found) {
		*left_out = found->left_out;
		snprintf(text, NOTICE_TEXT_MAX, "left out %u more that begin like \"%s\"", *left_out, found->begin);
		found->left_out = 0;
	}
	pthread_mutex_unlock(&mutex);
	return found;
}

static void put_back(struct kind *k, unsigned left_out) {
	pthread_mutex_lock(&mutex);
	k->left_out += left_out;
	pthread_mutex_unlock(&mutex);
}

bool notice_tidy(void) {
	char text[NOTICE_TEXT_MAX];
	unsigned left_out;
	bool more;
	if (pthread_mutex_trylock(&output) != 0) return true; /* stderr may be stuck */
	const bool room = has_room();
	pthread_mutex_unlock(&output);
	if (!room) return true;
	for (struct kind *k; (k = take_left_out(clock_s(), text, &left_out, &more));) {
		if (print(LEVEL_WARNING, text)) continue;
		put_back(k, left_out);
		return true;
	}
	return more;
}

/* Returns the kind of a format; the last one stands for all that found no place. The caller holds `mutex`. */
static struct kind *kind_of(const char *format) {
	struct kind *k = kinds;
	while (k < kinds + NOTICE_KINDS - 1 && k->format && k->format != format) k++;
	k->format = format;
	return k;
}

/* Counts a line of a format. Returns whether it may be printed in this second. */
static bool take_line(const char *format) {
	time_t now = clock_s();
	pthread_mutex_lock(&mutex);
	struct kind *k = kind_of(format);
	if (k->second != now && !k->left_out) k->lines = 0;
	k->second = now;
	bool may = k->lines++ < NOTICE_BURST;
	pthread_mutex_unlock(&mutex);
	return may;
}

static void leave_out(const char *format, const char *text) {
	pthread_mutex_lock(&mutex);
	struct kind *k = kind_of(format);
	if (!k->left_out++) snprintf(k->begin, sizeof k->begin, "%s", text);
	pthread_mutex_unlock(&mutex);
}

/* Prints a line, unless it is below the threshold. Returns false if it was left out, and is counted. */
static bool say(enum notice_level level, const char *format, const char *text) {
	if (level > threshold) return true;
	(void)notice_tidy();
	if (take_line(format) && print(level, text)) return true;
	leave_out(format, text);
	return false;
}

static void keep_one_line(char *text) {
	for (; *text; text++)
		if ((*text >= 0 && *text < ' ') || *text == 127) *text = '?';
}

void notice_line(enum notice_level level, const char *format, ...) {
	char text[2 * NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	keep_one_line(text);
	(void)say(level, format, text);
}

void notice_of_sink(const char *text) {
	pthread_mutex_lock(&output);
	if (stderr_has_room()) print_on_stderr(LEVEL_ERROR, text);
	pthread_mutex_unlock(&output);
}

static void keep_visible(char *text) {
	for (; *text; text++)
		if ((*text < ' ' || *text > '~') && *text != '\t') *text = '?';
}

void notice_remark(const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	keep_visible(text);
	printf("%s\n", text);
}

bool notice(uint64_t state, const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	const uint64_t key = slice_hash(state, slice_of(text));
	if (was_printed(key)) return false;
	keep_visible(text);
	if (checks) {
		printf("%s\n", text);
		return true;
	}
	bool said = say(LEVEL_WARNING, format, text);
	if (!said) forget_printed(key);
	return said;
}

bool notice_due(notice_time *next) {
	time_t now = clock_s();
	long long due = atomic_load(next);
	return now >= due && atomic_compare_exchange_strong(next, &due, now + NOTICE_AGAIN_S);
}

int notice_cannot(const char *action, const char *name, const char *reason) {
	char text[NOTICE_TEXT_MAX];
	snprintf(text, sizeof text, "cannot %s%s%s: %s", action, name ? " " : "", name ? name : "", reason);
	keep_one_line(text);
	pthread_mutex_lock(&mutex);
	memcpy(last, text, sizeof last);
	pthread_mutex_unlock(&mutex);
	(void)say(LEVEL_ERROR, action, text);
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
