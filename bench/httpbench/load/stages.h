/* stages.h - a run in open loop whose rate changes: stages, one after the other, each with its rate. */
#ifndef BENCH_STAGES_H
#define BENCH_STAGES_H

enum { STAGES_MAX = 32, STAGES_SECONDS_MAX = 86400 };

struct stage {
	double until_s, per_s; /* when it ends, since the start; how many requests are due a second */
	double before;         /* requests that are due before it */
};

struct stages {
	struct stage stage[STAGES_MAX];
	unsigned count; /* 0: the rate does not change */
};

/* Parses "10s:1000,1m:5000": how long a stage takes, in whole seconds (s, or nothing), minutes (m) or hours (h), and
 * its rate, from 0 to most. Returns 0, or -1 if the text is not that, or nothing would be due. */
int stages_parse(struct stages *stages, const char *text, double most);

/* Divides the rates among so many generators. */
void stages_divide(struct stages *stages, unsigned among);

/* Returns when, in seconds since the start, so many requests are due; INFINITY: they never are. */
double stages_when(const struct stages *stages, double requests);

/* Returns the stage at a time, the last one also after its end. */
unsigned stages_at(const struct stages *stages, double when_s);

/* Returns how many requests are due a second, on average. */
double stages_mean(const struct stages *stages);

#endif
