/* profile.c - see profile.h. */
#include "bench/profile.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "bench/usage.h"

extern char **environ;

pid_t profile_begin(pid_t sampled) {
	char number[16];
	pid_t perf;
	/* by the processor's clock, every 250 us: counters are not everywhere */
	char *const command[] = {"perf",   "record", "-q",        "-g", "-e",   "cpu-clock", "-c",
							 "250000", "-o",     "perf.data", "-p", number, NULL};
	snprintf(number, sizeof number, "%ld", (long)sampled);
	if (kill(sampled, 0) == -1 && errno == ESRCH) usage_refuse("--profile: there is no process %s", number);
	const int error = posix_spawnp(&perf, "perf", NULL, NULL, command, environ);
	if (error) usage_refuse("--profile: cannot start perf(1): %s", strerror(error));
	return perf;
}

void profile_end(pid_t perf) {
	int status = 0;
	(void)kill(perf, SIGINT);
	while (waitpid(perf, &status, 0) == -1 && errno == EINTR) {}
	/* when it has written its file, it ends by the signal */
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		fprintf(stderr, "%s: perf(1) has kept no stacks\n", usage_program);
}
