/* crowd.c - visitors who come to a web server at a given rate, whatever the server does. See gatling-crowd(1).
 *
 * The threads of client.c share nothing. The main thread adds up what they hand over each second, and prints it. */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "bench/crowd/client.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/usage.h"

enum {
	CLIENTS_MAX = 64,
	ERROR_MAX = 512,
	LATE_MS = 20, /* if one visitor in a hundred is later than this, the client is the limit */
	START_MS = 50 /* time for the threads to start */
};

#define LOOPBACK_SOURCES "127.1.0.0/16"

/* --- output --- */

static double processor_s(void) {
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		   (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void print_ms(const struct histogram *h, double percentile) {
	int64_t ns = histogram_percentile(h, percentile);
	if (ns == -1) printf("NA");
	else printf("%.1f", (double)ns / 1e6);
}

static void print_head(void) {
	printf("# second\tarrived\tpages");
	for (int i = 0; i < OUTCOMES; i++) printf("\t%s", outcome_name[i]);
	printf("\tp50_ms\tp99_ms\topen\treopened\texpelled\tclient_cpu\n");
}

static void print_second(unsigned second, const struct tally *t, double cpu_s) {
	printf("%u\t%llu\t%llu", second, (unsigned long long)t->arrived, (unsigned long long)t->pages);
	for (int i = 0; i < OUTCOMES; i++) printf("\t%llu", (unsigned long long)t->outcome[i]);
	printf("\t");
	print_ms(&t->answered, 50);
	printf("\t");
	print_ms(&t->answered, 99);
	printf("\t%u\t%llu\t%llu\t%.2f\n", t->open, (unsigned long long)t->reopened, (unsigned long long)t->expelled,
		   cpu_s);
	fflush(stdout);
}

static void print_total(const struct tally *t, unsigned seconds, double cpu_s) {
	printf("# seconds\t%u\n# arrived\t%llu\n# pages\t%llu\n", seconds, (unsigned long long)t->arrived,
		   (unsigned long long)t->pages);
	for (int i = 0; i < OUTCOMES; i++) printf("# %s\t%llu\n", outcome_name[i], (unsigned long long)t->outcome[i]);
	printf("# reopened\t%llu\n# expelled\t%llu\n# open\t%u\n", (unsigned long long)t->reopened,
		   (unsigned long long)t->expelled, t->open);
	printf("# goodput\t%.1f\n# p50_ms\t", seconds ? (double)t->outcome[OUTCOME_ANSWERED] / seconds : 0.0);
	print_ms(&t->answered, 50);
	printf("\n# p99_ms\t");
	print_ms(&t->answered, 99);
	printf("\n# lateness_p99_ms\t");
	print_ms(&t->lateness, 99);
	printf("\n# client_cpu\t%.2f\n", seconds ? cpu_s / seconds : 0.0);
	if (*t->failed) printf("# failed_first\t%s\n", t->failed);
	if (interrupt_came) printf("# interrupted\tyes\n");
}

/* Prints the reason if no page was answered, such as a server that is not there or a wrong URL. Returns the exit
 * status. */
static int judge_answers(const struct crowd_plan *plan, const struct tally *t) {
	int most = OUTCOME_ANSWERED;
	if (!t->pages || t->outcome[OUTCOME_ANSWERED]) return 0;
	for (int i = 0; i < OUTCOMES; i++)
		if (t->outcome[i] > t->outcome[most]) most = i;
	if (interrupt_came && most == OUTCOME_ANSWERED) return 0; /* it is too early to tell */
	fprintf(stderr, "crowd: no page was answered: ");
	if (most == OUTCOME_ANSWERED) fprintf(stderr, "all were under way at the end: make -d longer than --patience\n");
	else if (most == OUTCOME_FAILED) fprintf(stderr, "%s\n", t->failed);
	else if (most == OUTCOME_LATE) fprintf(stderr, "none came within --patience\n");
	else
		fprintf(stderr, "they were %s by the server of %s\n", most == OUTCOME_CUT ? "cut off" : "refused",
				plan->url->url);
	return 1;
}

/* Prints which limit of this process, if any, has distorted the results. Returns the exit status. */
static int judge(const struct crowd_plan *plan, const struct tally *t) {
	char text[2 * TALLY_REASON];
	int64_t late_ms = histogram_percentile(&t->lateness, 99) / 1000000;
	if (*t->limit)
		snprintf(text, sizeof text, "%llu visitors could not come: %s", (unsigned long long)t->unmade, t->limit);
	else if (late_ms > LATE_MS)
		snprintf(text, sizeof text,
				 "one visitor in a hundred was late by %lld ms or more: it has too little processor time",
				 (long long)late_ms);
	else return judge_answers(plan, t);
	printf("# limit\t%s\n", text);
	fprintf(stderr, "crowd: the client was the limit: %s\n", text);
	return 3;
}

/* --- the run --- */

/* Adds the next second of each client to sum, when it has ended. Returns false if the run has ended. */
static bool collect(struct client **client, unsigned clients, struct tally *sum) {
	bool running = true;
	for (unsigned i = 0; i < clients; i++) running &= client_collect(client[i], sum);
	return running;
}

/* Prints each second, and adds those after the warm-up to total. Returns the exit status. */
static int watch(const struct crowd_plan *plan, struct client **client, struct tally *second, struct tally *total) {
	unsigned warm_up = (unsigned)(plan->warm_up_ns / 1000000000), counted = 0;
	double since_s = processor_s(), before_s = since_s, now_s;
	print_head();
	for (unsigned n = 1; !interrupt_came && !ferror(stdout) && collect(client, plan->arrivals.clients, second);
		 n++, before_s = now_s) {
		now_s = processor_s();
		print_second(n, second, now_s - before_s);
		if (n > warm_up) {
			total->open = 0; /* so that the total has that of the last second */
			tally_add(total, second);
			counted++;
		} else {
			since_s = now_s;
		}
		tally_reset(second);
	}
	print_total(total, counted, before_s - since_s);
	return judge(plan, total);
}

static int run_plan(const struct crowd_plan *plan) {
	struct client *client[CLIENTS_MAX] = {0};
	unsigned clients = plan->arrivals.clients;
	struct tally *second = calloc(1, sizeof *second), *total = calloc(1, sizeof *total);
	bool made = second && total;
	int status = 3;
	interrupt_catch();
	for (unsigned i = 0; i < clients && made; i++) made = (client[i] = client_new(plan, i)) != NULL;
	int64_t start_ns = machine_clock_ns() + START_MS * 1000000;
	for (unsigned i = 0; i < clients && made; i++) made = client_start(client[i], start_ns) == 0;
	if (made) status = watch(plan, client, second, total);
	else fprintf(stderr, "crowd: cannot start: %s\n", strerror(errno));
	for (unsigned i = 0; i < clients; i++) {
		if (client[i]) client_stop(client[i]);
		client_free(client[i]);
	}
	free(second);
	free(total);
	return status;
}

/* --- options --- */

static const char help[] = "usage: crowd [options] PAGE [ASSET...]\n"
						   "Visitors come to a web server at a rate, whatever it does.\n"
						   "\n"
						   "  -R RATE           visitors a second (default: 100)\n"
						   "  -d SECONDS        that are measured (default: 10)\n"
						   "  -w SECONDS        before that, to warm up (default: 0)\n"
						   "  -p PAGES          that a visitor asks for (default: 1)\n"
						   "  -t THREADS        (default: 2)\n"
						   "      --think SECONDS    before the next page (default: 1)\n"
						   "      --patience SECONDS for a page with its assets (default: 10)\n"
						   "      --slow PERCENT     of the visitors ask for everything and hardly read\n"
						   "      --half PERCENT     of them send half a request\n"
						   "      --source NET       connect from the addresses of NET (default on loopback:\n"
						   "                         " LOOPBACK_SOURCES ")\n"
						   "  -h, --help\n";

enum { LONG_THINK = 256, LONG_PATIENCE, LONG_SLOW, LONG_HALF, LONG_SOURCE };

static int64_t seconds_of(const char *option, const char *text, double least) {
	return (int64_t)(usage_number(option, text, least, 3600) * 1e9);
}

static void take_source(struct crowd_plan *p, const char *net) {
	if (sources_parse(&p->arrivals.sources, net) == -1)
		usage_refuse("--source takes an address or a network like 127.1.0.0/16, not '%s'", net);
}

static bool on_loopback(const struct target *target) {
	const struct sockaddr_in *in = (const struct sockaddr_in *)&target->address;
	return in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

static void make_urls(struct crowd_plan *p, char **url, int count) {
	struct target_options request = {.method = "GET"};
	char error[ERROR_MAX];
	if (count == 0) usage_refuse("the URL of the page is missing");
	if (count > CROWD_URLS_MAX) usage_refuse("more than %d assets", CROWD_URLS_MAX - 1);
	p->url = calloc((size_t)count, sizeof *p->url);
	if (!p->url) usage_refuse("no memory for %d URLs", count);
	for (; p->urls < (unsigned)count; p->urls++) {
		struct target *t = &p->url[p->urls];
		if (target_make(t, url[p->urls], &request, p->url, error, sizeof error) == -1) usage_refuse("%s", error);
		if (t->host) usage_refuse("'%s': crowd speaks no TLS", t->url);
		if (memcmp(&t->address, &p->url->address, sizeof t->address) != 0)
			usage_refuse("%s is not on the server of %s", t->url, p->url->url);
	}
}

static void set_shares(struct crowd_plan *p, double slow, double half) {
	if (slow + half > 100) usage_refuse("--slow and --half make more than 100 percent");
	p->share[KIND_VISITOR] = 1 - (slow + half) / 100;
	p->share[KIND_SLOW] = 1 - half / 100;
	p->share[KIND_HALF] = 1;
	p->arrivals.share = p->share;
}

static void parse_options(struct crowd_plan *p, int argc, char **argv) {
	static const struct option long_options[] = {{"think", required_argument, NULL, LONG_THINK},
												 {"patience", required_argument, NULL, LONG_PATIENCE},
												 {"slow", required_argument, NULL, LONG_SLOW},
												 {"half", required_argument, NULL, LONG_HALF},
												 {"source", required_argument, NULL, LONG_SOURCE},
												 {"help", no_argument, NULL, 'h'},
												 {0}};
	const int64_t second_ns = 1000000000;
	double slow = 0, half = 0;
	*p = (struct crowd_plan){.arrivals = {.rate = 100, .clients = 2, .seed = 1, .ranks = 1, .targets = KINDS},
							 .pages = 1,
							 .think_ns = second_ns,
							 .patience_ns = 10 * second_ns,
							 .duration_ns = 10 * second_ns};
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":R:d:w:p:t:h", long_options, NULL)) != -1;) {
		switch (c) {
		case 'R': p->arrivals.rate = usage_number("-R", optarg, 0.1, 1e6); break;
		case 'd': p->duration_ns = second_ns * (int64_t)usage_whole_number("-d", optarg, 1, 86400); break;
		case 'w': p->warm_up_ns = second_ns * (int64_t)usage_whole_number("-w", optarg, 0, 86400); break;
		case 'p': p->pages = (unsigned)usage_whole_number("-p", optarg, 1, 1000); break;
		case 't': p->arrivals.clients = (unsigned)usage_whole_number("-t", optarg, 1, CLIENTS_MAX); break;
		case LONG_THINK: p->think_ns = seconds_of("--think", optarg, 0); break;
		case LONG_PATIENCE: p->patience_ns = seconds_of("--patience", optarg, 0.1); break;
		case LONG_SLOW: slow = usage_number("--slow", optarg, 0, 100); break;
		case LONG_HALF: half = usage_number("--half", optarg, 0, 100); break;
		case LONG_SOURCE: take_source(p, optarg); break;
		case 'h': usage_help(help);
		default: usage_bad_option(c, argv);
		}
	}
	set_shares(p, slow, half);
	make_urls(p, argv + optind, argc - optind);
	if (!p->arrivals.sources.count && on_loopback(p->url)) take_source(p, LOOPBACK_SOURCES);
	if (p->arrivals.sources.count) sources_require(&p->arrivals.sources, p->url->address.ss_family, p->url->url);
}

int main(int argc, char **argv) {
	struct crowd_plan plan;
	usage_program = "crowd";
	parse_options(&plan, argc, argv);
	plan.visitors = machine_connections(CROWD_CLIENT_VISITORS);
	signal(SIGPIPE, SIG_IGN);
	machine_describe(stdout, argc, argv);
	int status = run_plan(&plan);
	for (unsigned i = 0; i < plan.urls; i++) target_free(&plan.url[i]);
	free(plan.url);
	return usage_end(status);
}
