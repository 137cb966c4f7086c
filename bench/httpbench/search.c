/* search.c - see search.h. */
#include "bench/httpbench/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/report.h"
#include "bench/httpbench/statistics/bisect.h"
#include "bench/httpbench/verdict.h"

enum { SWEEP_STEPS = 11 };

int goal_parse(struct goal *g, const char *text) {
	static const struct {
		const char *name;
		double ns;
	} unit[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	if (*text != 'p') return -1;
	g->percentile = strtod(text + 1, &end);
	if (end == text + 1 || *end != '<' || !(g->percentile > 0 && g->percentile <= 100)) return -1;
	const char *limit = end + 1;
	double value = strtod(limit, &end);
	if (end == limit || !(value > 0)) return -1;
	for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
		if (strcmp(end, unit[i].name) != 0) continue;
		g->limit_ns = (int64_t)(value * unit[i].ns);
		return 0;
	}
	return -1;
}

static void ignore(void *context, double from_s, double to_s, const struct measures *m) {
	(void)context, (void)from_s, (void)to_s, (void)m;
}

static void print_head(void) {
	printf("%10s %10s %8s %8s %8s %8s %8s  %s\n", "due /s", "answered", "50%", "99%", "99.9%", "100%", "failed",
		   "verdict");
}

static void print_run(const struct plan *plan, const struct run *r) {
	char text[REPORT_TEXT], why[VERDICT_TEXT];
	printf("%10s", plan->rate > 0 ? report_rate(text, plan->rate) : "closed");
	printf(" %10s", report_rate(text, run_rate(r)));
	const struct histogram *whole = &r->total.duration[DURATION_WHOLE];
	for (int i = 0; i < REPORT_BRIEF; i++) {
		int64_t ns = histogram_percentile(whole, report_brief[i]);
		printf(" %8s", report_duration(text, (double)ns, report_beyond(&r->total, whole, plan->timeout_ns)));
	}
	const char *verdict = verdict_name[verdict_of(plan, r, why)];
	printf(" %8llu  %s%s%s\n", (unsigned long long)measures_failed(&r->total), verdict, *why ? ": " : "", why);
	fflush(stdout);
}

static int run_at(const struct plan *plan, double rate, struct run *r) {
	struct plan p = *plan;
	p.rate = rate;
	if (run_plan(&p, ignore, NULL, r) == -1) return -1;
	print_run(&p, r);
	return 0;
}

/* Makes a run in closed loop. Returns its rate in requests a second, or -1 with errno. */
static double capacity(const struct plan *plan, struct run *r) {
	print_head();
	return run_at(plan, 0, r) == -1 ? -1 : run_rate(r);
}

static int nothing_answered(const struct plan *plan, const struct run *r) {
	char why[VERDICT_TEXT];
	(void)verdict_of(plan, r, why);
	if (!verdict_explain(stderr, plan, &r->total)) fprintf(stderr, "httpbench: %s\n", why);
	return 2;
}

/* Returns whether a run meets the goal. The server has not kept up if the last answer came later, after the end of the
 * run, than the fastest answer explains. */
static bool is_met(const struct plan *plan, const struct goal *goal, const struct run *r) {
	const struct histogram *whole = &r->total.duration[DURATION_WHOLE];
	const int64_t ns = histogram_percentile(whole, goal->percentile);
	const bool kept_up = r->after_s * 1e9 - (double)whole->least < (double)plan->duration_ns * SEARCH_PRECISION;
	return !measures_failed(&r->total) && ns != -1 && ns < goal->limit_ns && kept_up;
}

/* Makes two runs with different seeds at a rate, which both have to meet the goal. A run in which the client was late,
 * or disturbed, shows nothing if it does not. Returns 0, or -1 with errno. */
static int try(struct plan *plan, const struct goal *goal, double rate, struct run *r, enum bisect_result *result) {
	char why[VERDICT_TEXT];
	*result = BISECT_MET;
	for (int i = 0; i < 2 && *result == BISECT_MET; i++) {
		plan->seed++;
		if (run_at(plan, rate, r) == -1) return -1;
		if (r->interrupted) *result = BISECT_UNKNOWN;
		else if (!is_met(plan, goal, r))
			*result = verdict_is_of_client(verdict_of(plan, r, why)) ? BISECT_UNKNOWN : BISECT_MISSED;
	}
	return 0;
}

/* Returns how many requests a percentile needs: ten are longer. */
static double needed(const struct goal *goal) { return goal->percentile < 100 ? 1000 / (100 - goal->percentile) : 1; }

/* Says why a search had to end. Returns the exit status. */
static int give_up(const struct bisect *search, const char *why) {
	char text[REPORT_TEXT];
	printf("\nundecided: %s\n", why);
	if (search->low > 0)
		printf("the goal is met at %s requests a second, and perhaps at more\n", report_rate(text, search->low));
	return 2;
}

int search_goal(const struct plan *given, const struct goal *goal) {
	static struct run r;
	struct plan plan = *given;
	const double duration_s = (double)plan.duration_ns / 1e9;
	char why[VERDICT_TEXT], text[REPORT_TEXT];
	const double most = capacity(&plan, &r);
	if (most < 0) return -1;
	if (most == 0) return nothing_answered(&plan, &r);
	struct bisect search = bisect_begin(most, SEARCH_PRECISION);
	for (double rate; (rate = bisect_rate(&search)) > 0 && !r.interrupted;) {
		const bool few = rate * duration_s < needed(goal); /* half of them can still miss the goal, but not meet it */
		const struct goal half = {.percentile = fmin(goal->percentile, 50), .limit_ns = goal->limit_ns};
		enum bisect_result result;
		if (try(&plan, few ? &half : goal, rate, &r, &result) == -1) return -1;
		if (few && result == BISECT_MET) {
			snprintf(why, sizeof why, "p%g needs %.0f requests, and at %s a second a run has fewer: -d %.0f",
					 goal->percentile, needed(goal), report_rate(text, rate), needed(goal) / rate + 1);
			return give_up(&search, why);
		}
		bisect_take(&search, result);
	}
	const double low = search.low;
	if (r.interrupted) printf("\ninterrupted: the goal is met at %s requests a second\n", report_rate(text, low));
	else if (bisect_undecided(&search))
		return give_up(&search, "the client, not the server, was the limit in three runs: see their verdicts");
	else if (low > 0) printf("\nhighest rate that meets the goal: %s requests a second\n", report_rate(text, low));
	else printf("\nno rate meets the goal\n");
	return low > 0 && !r.interrupted ? 0 : 1;
}

int search_sweep(const struct plan *plan) {
	static struct run r;
	double most = capacity(plan, &r);
	if (most < 0) return -1;
	if (most == 0) return nothing_answered(plan, &r);
	int result = 0;
	for (int i = 1; i <= SWEEP_STEPS && !r.interrupted; i++) {
		if (run_at(plan, most * i / 10, &r) == -1) return -1;
		if (measures_failed(&r.total)) result = 1;
	}
	return result;
}
