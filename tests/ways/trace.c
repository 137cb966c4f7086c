/* trace.c - notes each entry into a function and each return, for ways.py, in the file that the environment names with
 * WAYS_TRACE: of the threads that wait for events, since their first io_wait(). Linked with a server built with
 * -finstrument-functions. */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "io/io.h"

enum {
	RETURN = 1U << 31,
	DEPTH_MAX = 256 /* of calls before the first io_wait() */
};

/* As ways.py reads it. The length of the file says how much room there is. */
struct trace {
	_Atomic uint64_t notes;
	struct note {
		uint32_t function; /* its place in the program */
		uint32_t thread;   /* with RETURN: the function returns */
	} note[];
};

extern const char __executable_start[];
static struct trace *trace;
static uint64_t room;
/* Of this thread. */
static _Thread_local const void *entered[DEPTH_MAX];
static _Thread_local unsigned depth;
static _Thread_local bool waits;

#define UNTRACED __attribute__((no_instrument_function))
void __cyg_profile_func_enter(void *function, void *caller);
void __cyg_profile_func_exit(void *function, void *caller);

__attribute__((constructor)) UNTRACED static void begin(void) {
	const char *name = getenv("WAYS_TRACE");
	struct stat st;
	int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
	if (fd == -1 || fstat(fd, &st) == -1) return;
	void *at = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at == MAP_FAILED) return;
	room = ((uint64_t)st.st_size - sizeof *trace) / sizeof *trace->note;
	trace = at;
}

UNTRACED static void note(const void *function, uint32_t what) {
	const uint64_t n = atomic_fetch_add(&trace->notes, 1);
	if (n >= room) return;
	const uint32_t at = (uint32_t)((uintptr_t)function - (uintptr_t)__executable_start);
	trace->note[n] = (struct note){.function = at, .thread = (uint32_t)gettid() | what};
}

UNTRACED void __cyg_profile_func_enter(void *function, void *caller) {
	(void)caller;
	if (!trace) return;
	if (!waits && function == (void *)io_wait) {
		waits = true;
		for (unsigned i = 0; i < depth && i < DEPTH_MAX; i++) note(entered[i], 0);
	}
	if (waits) note(function, 0);
	else if (depth < DEPTH_MAX) entered[depth] = function;
	depth++;
}

UNTRACED void __cyg_profile_func_exit(void *function, void *caller) {
	(void)caller;
	if (!trace) return;
	depth--;
	if (waits) note(function, RETURN);
}
