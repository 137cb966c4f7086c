/* attempt.h - one run of uacme(1), which talks to the authority to open an account, to get a certificate, or to hear
 * whether one has to be renewed. */
#ifndef GATLING_ACME_ATTEMPT_H
#define GATLING_ACME_ATTEMPT_H

#include <stdint.h>
#include <sys/types.h>

#include "gatling/acme/acme_options.h"
#include "gatling/acme/challenges.h"
#include "gatling/acme/explain.h"

enum {
	ATTEMPT_S = 300,            /* after which a run is killed */
	ATTEMPT_OUTPUT = 16 * 1024, /* bytes of the output of uacme that are kept, the last ones */
	ATTEMPT_HOOK_LINE = 512     /* bytes of a line from the hook */
};

enum attempt_kind {
	ATTEMPT_ACCOUNT,
	ATTEMPT_CERTIFICATE,
	ATTEMPT_QUESTION /* whether the certificate has to be renewed now (RFC 9773): a good outcome is yes */
};

struct attempt {
	enum attempt_kind kind;
	const struct acme_options *options;
	pid_t process;    /* 0: none */
	int output, hook; /* descriptors: its stderr, and the socket of its hook; open while there is a process */
	int64_t until_ms; /* when it is killed, on the monotonic clock */
	char text[ATTEMPT_OUTPUT], line[ATTEMPT_HOOK_LINE];
	size_t length, line_length;
};

/* Writes the hook to the directory of the store, unless it is there already. Returns 0, or -1 with errno. */
int attempt_write_hook(const char *directory);

/* The version of uacme as a number: 10800 is 1.8.0, the first with profiles and with questions. */
enum { ATTEMPT_UACME_1_8 = 10800 };

/* Runs uacme for its version. Returns 0 if it does not say. */
unsigned attempt_version(void);

/* Starts a run for the certificate of a name, or for an account. Returns 0, or -1 with errno. */
int attempt_start(struct attempt *attempt, enum attempt_kind kind, const struct acme_options *options, const char *name,
				  int64_t now_ms);

/* Reads the output of the run, and answers its hook. Returns whether the run is over; then *outcome is filled in, and
 * the attempt can be used again. */
bool attempt_go_on(struct attempt *attempt, struct challenges *challenges, int64_t now_ms, struct outcome *outcome);

/* Kills a run, if there is one. */
void attempt_stop(struct attempt *attempt, struct challenges *challenges);

#endif
