/* rank.c - see rank.h. */
#include "bench/httpbench/rank.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "bench/machine.h"

static const struct launcher {
	const char *rank, *ranks;
	unsigned first; /* the lowest rank */
} launchers[] = {
	{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", 0},
	{"PMI_RANK", "PMI_SIZE", 0},
	{"SLURM_PROCID", "SLURM_NTASKS", 0},
	{"JOB_COMPLETION_INDEX", NULL, 0},
	{"PARALLEL_SEQ", NULL, 1},
};

/* Reads a number from the environment. Returns false if there is none. */
static bool take(const char *name, unsigned least, unsigned *number) {
	const char *text = name ? getenv(name) : NULL;
	char *end;
	unsigned long value = text ? strtoul(text, &end, 10) : 0;
	if (!text || end == text || *end || value < least || value > RANK_MAX) return false;
	*number = (unsigned)value;
	return true;
}

void rank_from_environment(unsigned *rank, unsigned *ranks) {
	for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
		unsigned number;
		if (!take(launchers[i].rank, launchers[i].first, &number)) continue;
		*rank = number - launchers[i].first;
		(void)take(launchers[i].ranks, 1, ranks);
		return;
	}
}

char *rank_in_name(const char *name, unsigned rank) {
	char *result;
	size_t length;
	FILE *out = open_memstream(&result, &length);
	if (!out) return NULL;
	for (; *name; name++) {
		if (name[0] == '%' && name[1] == 'r') {
			fprintf(out, "%u", rank);
			name++;
		} else {
			putc(*name, out);
		}
	}
	return fclose(out) == 0 ? result : NULL;
}

bool rank_wait(double start_s) {
	double left = start_s - machine_seconds(CLOCK_REALTIME);
	if (left < 0) return false;
	struct timespec pause = {.tv_sec = (time_t)left, .tv_nsec = (long)((left - floor(left)) * 1e9)};
	while (nanosleep(&pause, &pause) == -1 && errno == EINTR) {}
	return true;
}
