/* notice.c - see notice.h. */
#include "gatling/base/notice.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "gatling/base/hash.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t said[NOTICES_MAX]; /* hashes; guarded by it, as */
static unsigned count;
static bool checks; /* not changed once there are threads */

static bool is_new(uint64_t key) {
	bool before = false;
	pthread_mutex_lock(&mutex);
	for (unsigned i = 0; i < NOTICES_MAX && !before; i++) before = said[i] == key;
	if (!before) said[count++ % NOTICES_MAX] = key;
	pthread_mutex_unlock(&mutex);
	return !before;
}

bool notice(uint64_t state, const char *format, ...) {
	char text[NOTICE_TEXT_MAX];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (!is_new(hash_octets(state, (struct slice){.at = text, .length = strlen(text)}))) return false;
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c > '~') *c = '?';
	if (checks) printf("%s\n", text);
	else fprintf(stderr, "gatling: %s\n", text);
	return true;
}

void notice_check(void) { checks = true; }
bool notice_checks(void) { return checks; }
unsigned notices(void) { return count; }
