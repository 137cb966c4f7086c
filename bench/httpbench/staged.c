/* staged.c - see staged.h. A request belongs to the stage in which it ended. */
#include "bench/httpbench/staged.h"

#include <stdlib.h>

#include "bench/httpbench/report.h"
#include "bench/usage.h"

struct staged {
	const struct plan *plan;
	struct measures total[]; /* of each stage */
};

struct staged *staged_new(const struct plan *plan) {
	if (!plan->stages.count) return NULL;
	struct staged *s = calloc(1, sizeof *s + plan->stages.count * sizeof *s->total);
	if (!s) usage_refuse("no memory for %u stages", plan->stages.count);
	s->plan = plan;
	return s;
}

void staged_free(struct staged *s) { free(s); }

void staged_take(struct staged *s, double from_s, double to_s, const struct measures *m) {
	if (s) measures_add(&s->total[stages_at(&s->plan->stages, (from_s + to_s) / 2)], m);
}

void staged_print(FILE *out, const struct staged *s) {
	char text[REPORT_TEXT];
	if (!s) return;
	const struct stages *const stages = &s->plan->stages;
	fprintf(out, "\n%11s %9s %10s %8s", "until", "due /s", "answered", "failed");
	for (int i = 0; i < REPORT_BRIEF; i++) fprintf(out, " %7.4g%%", report_brief[i]);
	fputs("\n", out);
	for (unsigned i = 0; i < stages->count; i++) {
		const struct measures *m = &s->total[i];
		const struct histogram *whole = &m->duration[DURATION_WHOLE];
		fprintf(out, "%9.0f s %9s", stages->stage[i].until_s, report_rate(text, stages->stage[i].per_s));
		fprintf(out, " %10llu %8llu", (unsigned long long)m->count[COUNT_ANSWERED],
				(unsigned long long)measures_failed(m));
		for (int j = 0; j < REPORT_BRIEF; j++) {
			const int64_t ns = histogram_percentile(whole, report_brief[j]);
			const bool none = !whole->samples && !whole->censored;
			fprintf(out, " %8s",
					none ? "-" : report_duration(text, (double)ns, report_beyond(m, whole, s->plan->timeout_ns)));
		}
		fputs("\n", out);
	}
}

void staged_json(FILE *out, const struct staged *s) {
	const struct stages *const stages = &s->plan->stages;
	fputs(" \"stages\": [", out);
	for (unsigned i = 0; i < stages->count; i++) {
		const struct measures *m = &s->total[i];
		fprintf(out, "%s{\"until_s\": %g, \"rate\": %.10g, \"answered\": %llu, \"failed\": %llu", i ? ", " : "",
				stages->stage[i].until_s, stages->stage[i].per_s, (unsigned long long)m->count[COUNT_ANSWERED],
				(unsigned long long)measures_failed(m));
		for (int j = 0; j < REPORT_BRIEF; j++) {
			const int64_t ns = histogram_percentile(&m->duration[DURATION_WHOLE], report_brief[j]);
			fprintf(out, ", \"p%g_ns\": ", report_brief[j]);
			if (ns < 0) fputs("null", out);
			else fprintf(out, "%lld", (long long)ns);
		}
		fputc('}', out);
	}
	fputs("],\n", out);
}
