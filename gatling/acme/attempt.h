/* attempt.h - one run of uacme(1), which speaks with the authority: to open an account, or for a certificate. */
#ifndef GATLING_ACME_ATTEMPT_H
#define GATLING_ACME_ATTEMPT_H

#include <stdint.h>
#include <sys/types.h>

#include "gatling/acme/acme_options.h"
#include "gatling/acme/challenges.h"
#include "gatling/acme/explain.h"

enum {
	ATTEMPT_S = 300,            /* after which a run is ended */
	ATTEMPT_OUTPUT = 16 * 1024, /* bytes of what uacme has said last */
	ATTEMPT_HOOK_LINE = 512     /* bytes of what the hook says */
};

struct attempt {
	const struct acme_options *options;
	pid_t process;    /* 0: none */
	int output, hook; /* what it writes to stderr; what its hook asks us. -1: closed */
	int64_t until_ms; /* of the monotonic clock */
	char text[ATTEMPT_OUTPUT], line[ATTEMPT_HOOK_LINE];
	size_t length, line_length;
};

/* Writes the hook, in the directory of the store, unless it is there. Returns 0, or -1 with errno. */
int attempt_write_hook(const char *directory);

/* Starts a run; name: NULL for an account. Returns 0, or -1 with errno. */
int attempt_start(struct attempt *attempt, const struct acme_options *options, const char *name, int64_t now_ms);

/* Reads what the run has to say, and answers its hook. Returns whether it is over: then *outcome is filled in, and the
 * attempt is free again. */
bool attempt_go_on(struct attempt *attempt, struct challenges *challenges, int64_t now_ms, struct outcome *outcome);

/* Ends a run. */
void attempt_stop(struct attempt *attempt, struct challenges *challenges);

#endif
