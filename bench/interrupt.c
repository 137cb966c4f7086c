/* interrupt.c - see interrupt.h. */
#include "bench/interrupt.h"

#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "bench/machine.h"

enum { AT_ONCE_NS = 300000000 };

volatile sig_atomic_t interrupt_came;

void (*interrupt_before_end)(void);

bool interrupt_is_later(void) {
	static int64_t first_ns;
	int64_t now_ns = machine_clock_ns();
	if (!interrupt_came) first_ns = now_ns;
	interrupt_came = 1;
	return now_ns - first_ns > AT_ONCE_NS;
}

static void interrupt(int number) {
	if (!interrupt_is_later()) return;
	if (interrupt_before_end) interrupt_before_end();
	_exit(128 + number);
}

void interrupt_catch(void) {
	struct sigaction catch = {.sa_handler = interrupt, .sa_flags = SA_RESTART};
	sigaction(SIGINT, &catch, NULL);
	sigaction(SIGTERM, &catch, NULL);
}
