/* profile.c - see profile.h. */
#include "bench/profile.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/platform.h"
#include "bench/usage.h"

#define PROFILE_FILE "perf.data"

static pid_t perf;

/* Stops perf(1); called at exit, too, in case the program ends before profile_end(). */
static void stop(void) {
	if (perf) (void)kill(perf, SIGINT);
}

/* Becomes perf(1), which reads its orders from one descriptor and acknowledges them on the other. If it cannot start,
 * writes errno to failed. */
__attribute__((noreturn)) static void be_perf(pid_t sampled, int orders, int acknowledges, int failed) {
	char number[16], control[32];
	/* by the processor's clock, every 250 us, since hardware counters are not available everywhere */
	char *const command[] = {"perf", "record",     "-q",        "-g",    "-e", "cpu-clock", "-c", "250000",
							 "-o",   PROFILE_FILE, "--control", control, "-p", number,      NULL};
	platform_end_with_parent();
	snprintf(number, sizeof number, "%ld", (long)sampled);
	snprintf(control, sizeof control, "fd:%d,%d", orders, acknowledges);
	(void)fcntl(orders, F_SETFD, 0);
	(void)fcntl(acknowledges, F_SETFD, 0);
	execvp("perf", command);
	const int error = errno;
	_exit(write(failed, &error, sizeof error) == sizeof error ? 127 : 126);
}

void profile_begin(pid_t sampled) {
	static const char order[] = "enable\n";
	int orders[2], acknowledges[2], failed[2], error;
	char answer[8];
	if (kill(sampled, 0) == -1 && errno == ESRCH) usage_refuse("--profile: there is no process %ld", (long)sampled);
	(void)unlink(PROFILE_FILE);
	if (platform_pipe(orders) == -1 || platform_pipe(acknowledges) == -1 || platform_pipe(failed) == -1 ||
		(perf = fork()) == -1)
		usage_refuse("--profile: %s", strerror(errno));
	if (perf == 0) be_perf(sampled, orders[0], acknowledges[1], failed[1]);
	(void)atexit(stop);
	close(orders[0]);
	close(acknowledges[1]);
	close(failed[1]);
	if (read(failed[0], &error, sizeof error) == sizeof error)
		usage_refuse("--profile: cannot start perf(1): %s", strerror(error));
	/* perf(1) acknowledges the order when it samples; if it has failed, the pipe ends */
	if (write(orders[1], order, strlen(order)) > 0) (void)!read(acknowledges[0], answer, sizeof answer);
	close(failed[0]);
	close(acknowledges[0]);
}

void profile_end(void) {
	stop();
	while (waitpid(perf, NULL, 0) == -1 && errno == EINTR) {}
	perf = 0;
	if (access(PROFILE_FILE, R_OK) == -1) fprintf(stderr, "%s: perf(1) has kept no stacks\n", usage_program);
}
