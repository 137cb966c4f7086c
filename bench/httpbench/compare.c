/* compare.c - see compare.h. */
#include "bench/httpbench/compare.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/httpbench/statistics/permuted.h"
#include "bench/httpbench/report.h"
#include "bench/httpbench/run_log.h"
#include "bench/httpbench/verdict.h"
#include "bench/httpbench/statistics/student.h"
#include "bench/usage.h"

enum {
	SECTIONS_MAX = 20, /* with more, they would be shorter and less independent */
	SECTIONS_MIN = 5,
	SECTION_S = 2,      /* the shortest section */
	CONDITION_TEXT = 64 /* bytes of a condition, and whether it holds */
};
static const double CORRELATION_MAX = 0.6; /* of so few sections a greater one is chance, or a drift over all of them */

/* A run, divided into sections of whole seconds, like those of the log; the last one also gets the rest. */
struct side {
	struct run_log log;
	unsigned sections;
	double section_s;
	struct histogram section[SECTIONS_MAX]; /* of DURATION_WHOLE */
	bool overloaded;
	char queue[VERDICT_TEXT]; /* how it grew then */
};

/* A value of one run, estimated from its sections. */
struct estimate {
	double value;             /* negative: not known, since too many requests failed */
	double variance, freedom; /* of its logarithm; freedom 0: not known */
};

/* --- reading --- */

static void take_nothing(void *side, const struct run_log *l, const struct hlog_line *line, enum duration duration,
						 bool failed, const struct histogram *h) {
	(void)side, (void)l, (void)line, (void)duration, (void)failed, (void)h;
}

static void take_section(void *side, const struct run_log *l, const struct hlog_line *line, enum duration duration,
						 bool failed, const struct histogram *h) {
	struct side *s = side;
	(void)l;
	if (duration != DURATION_WHOLE) return;
	const double middle_s = line->start_s + line->length_s / 2;
	double at = floor(middle_s / s->section_s);
	if (!(at >= 0 && at < s->sections)) at = s->sections - 1;
	struct histogram *section = &s->section[(unsigned)at];
	if (failed) section->censored += h->samples;
	else histogram_add(section, h);
}

/* Reads a log twice, since its length must be known first. Returns 0, or -1 after a message on stderr. */
static int read_side(struct side *s, const char *path) {
	struct run_log *again = malloc(sizeof *again);
	if (!again) usage_refuse("no memory for the logs");
	int result = run_log_read(&s->log, path, take_nothing, NULL);
	const double elapsed_s = s->log.run.elapsed_s; /* not the end of the last interval: a timeout may come later */
	s->section_s = fmax(SECTION_S, ceil(floor(elapsed_s) / SECTIONS_MAX));
	s->sections = (unsigned)fmin(SECTIONS_MAX, elapsed_s / s->section_s);
	if (result == 0 && s->sections < SECTIONS_MIN)
		result =
			run_log_complain(path, "it is too short to be compared: %d seconds are needed", SECTIONS_MIN * SECTION_S);
	if (result == 0 && !s->log.run.total.duration[DURATION_WHOLE].samples)
		result = run_log_complain(path, "nothing was answered");
	if (result == 0) {
		result = run_log_read(again, path, take_section, s);
		run_log_free(again);
	}
	free(again);
	const bool staged = s->log.plan && run_log_number(s->log.plan, "stages") > 0; /* its trend is that of the rate */
	const double per_s = s->log.plan && !staged ? run_log_real(s->log.plan, "rate") : 0;
	s->overloaded = per_s > 0 && verdict_overloaded(&s->log.run.trend, per_s, s->queue);
	return result;
}

/* Returns whether the first word of the verdict in a log is that one. */
static bool has_verdict(const struct side *s, enum verdict verdict) {
	const char *const text = s->log.verdict ? s->log.verdict : "", *const word = verdict_name[verdict];
	return strcspn(text, ":") == strlen(word) && strncmp(text, word, strlen(word)) == 0;
}

/* --- estimating --- */

/* Returns the correlation of neighbouring distances by von Neumann's ratio ("A Further Remark Concerning the
 * Distribution of the Ratio of the Mean Square Successive Difference to the Variance", 1942), or 0 if it is negative.
 */
static double correlation(const double *distance, unsigned count) {
	double mean = 0, squares = 0, steps = 0;
	for (unsigned i = 0; i < count; i++) mean += distance[i] / count;
	for (unsigned i = 0; i < count; i++) squares += (distance[i] - mean) * (distance[i] - mean);
	for (unsigned i = 1; i < count; i++) steps += (distance[i] - distance[i - 1]) * (distance[i] - distance[i - 1]);
	const double found =
		squares > 0 ? 1 - steps / (2 * squares) + 1.0 / (count - 1) : 0; /* without bias if there is none */
	return found < 0 ? 0 : found > CORRELATION_MAX ? CORRELATION_MAX : found;
}

/* Estimates the variance. A drift makes neighbouring sections similar, and they count as fewer independent ones, by the
 * rule for a first-order autoregression. */
static struct estimate spread(const struct side *s, double value, const double *distance) {
	const double alike = correlation(distance, s->sections), independent = s->sections * (1 - alike) / (1 + alike);
	double squares = 0;
	for (unsigned i = 0; i < s->sections; i++) squares += distance[i] * distance[i];
	return (struct estimate){.value = value,
							 .variance = squares / (s->sections - 1) / independent,
							 .freedom = independent > 2 ? independent - 1 : 1};
}

static struct estimate estimate_percentile(const struct side *s, double percentile) {
	double distance[SECTIONS_MAX];
	const int64_t all = histogram_percentile(&s->log.run.total.duration[DURATION_WHOLE], percentile);
	for (unsigned i = 0; i < s->sections; i++) {
		const int64_t one = histogram_percentile(&s->section[i], percentile);
		if (one <= 0 || all <= 0) return (struct estimate){.value = (double)all};
		distance[i] = log((double)one / (double)all);
	}
	return spread(s, (double)all, distance);
}

static struct estimate estimate_rate(const struct side *s) {
	double distance[SECTIONS_MAX];
	const struct run *r = &s->log.run;
	const uint64_t late = r->total.count[COUNT_LATE]; /* they are in the last section */
	const double elapsed_s = r->elapsed_s, all = (double)(r->total.duration[DURATION_WHOLE].samples - late) / elapsed_s;
	for (unsigned i = 0; i < s->sections; i++) {
		const double last_s = elapsed_s - s->section_s * (s->sections - 1);
		const bool last = i + 1 == s->sections;
		const double answered = (double)s->section[i].samples - (last ? (double)late : 0);
		distance[i] = answered / (last ? last_s : s->section_s) / all - 1; /* nearly the logarithm, also for 0 */
	}
	return spread(s, all, distance);
}

/* The logarithm of a ratio, and its error. freedom 0: not known. */
struct ratio {
	double log, error, freedom;
};

/* Returns the ratio of b to a, by Welch's test, with the degrees of freedom of Welch and Satterthwaite. */
static struct ratio ratio_of(const struct estimate *a, const struct estimate *b) {
	const double sum = a->variance + b->variance;
	struct ratio r = {.log = log(b->value / a->value), .error = sqrt(sum)};
	if (a->freedom == 0 || b->freedom == 0) return r;
	r.freedom = a->freedom + b->freedom;
	if (sum > 0)
		r.freedom = sum * sum / (a->variance * a->variance / a->freedom + b->variance * b->variance / b->freedom);
	return r;
}

/* Returns the confidence that the logarithm of the ratio exceeds a limit. */
static double confidence_above(const struct ratio *r, double limit) {
	if (r->error == 0) return r->log > limit;
	return student_below((r->log - limit) / r->error, r->freedom);
}

/* --- the table --- */

enum { RATIO_MAX = 1000 }; /* as the upper bound it says no more than a larger one would */

static void print_row(const char *name, const char *const value[2], const struct estimate e[2], double confidence) {
	const struct ratio r = ratio_of(&e[0], &e[1]);
	printf("%-10s %11s %11s", name, value[0], value[1]);
	if (r.freedom == 0) {
		puts("   not known: too many failed, or too few came");
		return;
	}
	const double reach = student_quantile((1 + confidence) / 2, r.freedom) * r.error;
	const double least = exp(r.log - reach), most = exp(r.log + reach);
	printf(" %7.3f   %.3f ", exp(r.log), least);
	if (most < RATIO_MAX) printf("to %.3f", most);
	else fputs("or more", stdout);
	puts(least > 1 ? "   more" : most < 1 ? "   less" : "");
}

static void print_rate(struct side *const side[2], double confidence) {
	const struct estimate e[2] = {estimate_rate(side[0]), estimate_rate(side[1])};
	char rate[REPORT_TEXT], text[2][REPORT_TEXT + sizeof "/s"];
	for (int i = 0; i < 2; i++) snprintf(text[i], sizeof text[i], "%s/s", report_rate(rate, e[i].value));
	print_row("answered", (const char *const[]){text[0], text[1]}, e, confidence);
}

static void print_percentile(struct side *const side[2], double percentile, double confidence) {
	const struct estimate e[2] = {estimate_percentile(side[0], percentile), estimate_percentile(side[1], percentile)};
	char name[32], text[2][REPORT_TEXT];
	snprintf(name, sizeof name, "%g%%", percentile);
	for (int i = 0; i < 2; i++) {
		const struct run_log *l = &side[i]->log;
		const int64_t timeout_ns = l->plan ? (int64_t)(run_log_real(l->plan, "timeout_s") * 1e9) : 0;
		const struct measures *m = &l->run.total;
		report_duration(text[i], e[i].value, report_beyond(m, &m->duration[DURATION_WHOLE], timeout_ns));
	}
	print_row(name, (const char *const[]){text[0], text[1]}, e, confidence);
}

/* Prints the settings that differ. They are "[Plan: name value name value ... ]". */
static void print_settings(struct side *const side[2]) {
	char *plan[2], *rest[2], *name[2], *value[2];
	if (!side[0]->log.plan || !side[1]->log.plan) return;
	for (int i = 0; i < 2; i++) {
		plan[i] = strdup(side[i]->log.plan);
		if (!plan[i]) usage_refuse("no memory for the logs");
		(void)strtok_r(plan[i], " ", &rest[i]);
	}
	while ((name[0] = strtok_r(NULL, " ]", &rest[0])) && (value[0] = strtok_r(NULL, " ]", &rest[0])) &&
		   (name[1] = strtok_r(NULL, " ]", &rest[1])) && (value[1] = strtok_r(NULL, " ]", &rest[1])))
		if (strcmp(value[0], value[1]) != 0) printf("%-10s %s, %s\n", name[0], value[0], value[1]);
	for (int i = 0; i < 2; i++) free(plan[i]);
}

static void print_table(struct side *const side[2], double confidence) {
	static const double percentile[] = {50, 75, 90, 99, 99.9, 99.99};
	printf("A          %s\nB          %s\n", side[0]->log.path, side[1]->log.path);
	print_settings(side);
	for (int i = 0; i < 2; i++) {
		const struct side *s = side[i];
		if (s->log.verdict) report_wrapped(stdout, "verdict", "%c: %s", 'A' + i, s->log.verdict);
		if (s->overloaded && !has_verdict(s, VERDICT_OVERLOADED))
			report_wrapped(stdout, "verdict", "%c: %s: %s", 'A' + i, verdict_name[VERDICT_OVERLOADED], s->queue);
	}
	printf("sections   %u of %g s, %u of %g s\n\n", side[0]->sections, side[0]->section_s, side[1]->sections,
		   side[1]->section_s);
	printf("%-10s %11s %11s %7s   with a confidence of %g%%\n", "", "A", "B", "B/A", confidence * 100);
	print_rate(side, confidence);
	for (unsigned i = 0; i < sizeof percentile / sizeof *percentile; i++)
		print_percentile(side, percentile[i], confidence);
	printf("%-10s %11llu %11llu\n", "failed", (unsigned long long)measures_failed(&side[0]->log.run.total),
		   (unsigned long long)measures_failed(&side[1]->log.run.total));
}

/* --- conditions --- */

int compare_condition_parse(struct compare_condition *c, const char *text) {
	static const struct {
		const char *start;
		int of;
		double most;
	} named[] = {{"rate<", COMPARE_RATE, 1}, {"failed>", COMPARE_FAILED, 1}};
	const char *number = NULL;
	char *end = NULL;
	double most = 1e6;
	*c = (struct compare_condition){.text = text};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		if (strncmp(text, named[i].start, strlen(named[i].start)) != 0) continue;
		c->of = named[i].of;
		most = named[i].most;
		number = text + strlen(named[i].start);
	}
	if (!number && *text == 'p') {
		c->percentile = strtod(text + 1, &end);
		if (*end == '>' && c->percentile >= 0 && c->percentile < 100) number = end + 1;
	}
	if (!number) return -1;
	c->limit = strtod(number, &end) / 100;
	return end != number && strcmp(end, "%") == 0 && c->limit >= 0 && c->limit < most ? 0 : -1;
}

/* Prints whether a condition holds, and why. Returns 1 if it does, 0 if not, or 2 if that is open. */
__attribute__((format(printf, 3, 4))) static int decide(const struct compare_condition *c, int answer, const char *why,
														...) {
	static const char *const word[] = {"no", "yes", "open"};
	char name[CONDITION_TEXT], reason[VERDICT_TEXT];
	va_list arguments;
	va_start(arguments, why);
	snprintf(name, sizeof name, "%s: %s,", c->text, word[answer]);
	vsnprintf(reason, sizeof reason, why, arguments);
	va_end(arguments);
	report_wrapped(stdout, name, "%s", reason);
	return answer;
}

static int check_failed(const struct run *r, const struct compare_condition *c) {
	const double failed = (double)measures_failed(&r->total),
				 all = failed + (double)r->total.duration[DURATION_WHOLE].samples;
	return decide(c, failed > c->limit * all, "it is %.3g%% of %.0f", failed * 100 / all, all);
}

/* Returns whether the verdict in a log says that the client was the limit. */
static bool is_of_client(const struct side *s) {
	for (int v = 0; v < VERDICTS; v++)
		if (has_verdict(s, (enum verdict)v) && verdict_is_of_client((enum verdict)v)) return true;
	return false;
}

/* Checks a condition, and prints the result. Returns 1 if it holds, 0 if it does not, or 2 if that is open. */
static int check(struct side *const side[2], const struct compare_condition *c, double confidence) {
	const bool rate = c->of == COMPARE_RATE;
	struct estimate e[2];
	if (c->of == COMPARE_FAILED) return check_failed(&side[1]->log.run, c);
	for (int i = 0; i < 2; i++)
		if (is_of_client(side[i])) return decide(c, 2, "the verdict of %c is %s", 'A' + i, side[i]->log.verdict);
	if (!rate && side[0]->overloaded) return decide(c, 2, "A was overloaded itself");
	if (!rate && side[1]->overloaded) return decide(c, 1, "B is overloaded: %s", side[1]->queue);
	for (int i = 0; i < 2; i++) e[i] = rate ? estimate_rate(side[i]) : estimate_percentile(side[i], c->percentile);
	struct ratio r = ratio_of(&e[0], &e[1]);
	if (r.freedom == 0) {
		const bool worse = e[0].value > 0 && e[1].value < 0; /* longer than the timeout */
		return decide(c, worse ? 1 : 2, "too many requests failed%s", worse ? "" : ", or too few came");
	}
	if (rate) r.log = -r.log;
	const double welch = confidence_above(&r, rate ? -log(1 - c->limit) : log(1 + c->limit));
	struct permuted chance = {0};
	if (!rate)
		chance = permuted_percentile(side[0]->section, side[0]->sections, side[1]->section, side[1]->sections,
									 c->percentile, 1 + c->limit);
	const double sure = fmin(welch, 1 - chance.above), sure_not = fmin(1 - welch, 1 - chance.below);
	if (sure >= confidence) return decide(c, 1, "with a confidence of %.2f%%", sure * 100);
	if (sure_not >= COMPARE_NO_CONFIDENCE) return decide(c, 0, "with a confidence of %.2f%%", sure_not * 100);
	return decide(c, 2, "it holds with a confidence of %.0f%%: longer or quieter runs would tell", sure * 100);
}

int compare_logs(const char *const path[2], double confidence, const struct compare_condition *condition,
				 unsigned conditions) {
	struct side *side[2] = {calloc(1, sizeof *side[0]), calloc(1, sizeof *side[1])};
	if (!side[0] || !side[1]) usage_refuse("no memory for the logs");
	int result = 0;
	for (int i = 0; i < 2; i++)
		if (read_side(side[i], path[i]) == -1) result = 2;
	if (result == 0) print_table(side, confidence);
	if (result == 0 && conditions) puts("");
	const unsigned checked = result ? 0 : conditions;
	for (unsigned i = 0; i < checked; i++) {
		const int one = check(side, &condition[i], 1 - (1 - confidence) / conditions);
		if (result != 1 && one) result = one;
	}
	for (int i = 0; i < 2; i++) {
		run_log_free(&side[i]->log);
		free(side[i]);
	}
	return result;
}
