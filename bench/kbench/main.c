/* main.c - kbench: measures services of the kernel as the number of objects in use grows. See gatling-kbench(1). */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/kbench/fork.h"
#include "bench/kbench/link.h"
#include "bench/kbench/net.h"
#include "bench/machine.h"
#include "bench/platform.h"
#include "bench/usage.h"
#include "io/io.h"

#define SIZE_OF_FRAME UINT_MAX /* stands for a payload that fills an Ethernet frame, of either family */

enum {
	COUNT_MAX = 1000000,
	RUNS = 5,
	RUNS_MAX = 1000,
	SOURCES_MAX = 250,
	PORT_MAX = 65535,
	DATAGRAM = 1472, /* the payload that fills an Ethernet frame */
	DATAGRAM6 = 1452,
	DATAGRAM_MAX = 65487,
	WIDTH = 80 /* of a terminal */
};

static const struct benchmark *const benchmarks[] = {
	&benchmark_socket, &benchmark_bind,     &benchmark_accept, &benchmark_fork,  &benchmark_mmap,    &benchmark_files,
	&benchmark_event,  &benchmark_download, &benchmark_stream, &benchmark_relay, &benchmark_forward, NULL,
};

enum {
	LONG_RUNS = 256,
	LONG_POINTS,
	LONG_KIND,
	LONG_SOURCES,
	LONG_PORTS,
	LONG_DIRECTORY,
	LONG_STREAMS,
	LONG_SIZE,
	LONG_SERVER,
	LONG_LINK
};

static const struct known_option {
	struct option option;
	unsigned of; /* the set of benchmarks that have it; 0: all */
	const char *help;
} known_options[] = {
	{{"count", required_argument, NULL, 'n'}, 0, "-n, --count N       how far n goes"},
	{{"runs", required_argument, NULL, LONG_RUNS}, 0, "    --runs N        repetitions, a process each (default: 5)"},
	{{"points", required_argument, NULL, LONG_POINTS},
	 0,
	 "    --points N      rows of a run at most, each of a group (default: all)"},
	{{"kind", required_argument, NULL, LONG_KIND}, 0, NULL},
	{{"ipv6", no_argument, NULL, '6'}, KBENCH_OPTION_FAMILY, "-6, --ipv6"},
	{{"sources", required_argument, NULL, LONG_SOURCES},
	 KBENCH_OPTION_SOURCES,
	 "    --sources N     addresses the connections come from (default: 1)"},
	{{"ports", required_argument, NULL, LONG_PORTS},
	 KBENCH_OPTION_PORTS,
	 "    --ports LO-HI   that the kernel gives out"},
	{{"directory", required_argument, NULL, LONG_DIRECTORY},
	 KBENCH_OPTION_DIRECTORY,
	 "    --directory DIR for the files (default: /tmp)"},
	{{"streams", required_argument, NULL, LONG_STREAMS},
	 KBENCH_OPTION_STREAMS,
	 "    --streams N     at the same time (default: 1)"},
	{{"size", required_argument, NULL, LONG_SIZE},
	 KBENCH_OPTION_SIZE,
	 "    --size BYTES    of a datagram's payload (default: a full frame)"},
	{{"server", required_argument, NULL, LONG_SERVER},
	 KBENCH_OPTION_SERVER,
	 "    --server PATH   of gatling (default: beside this program)"},
	{{"link", required_argument, NULL, LONG_LINK}, KBENCH_OPTION_LINK, NULL},
	{{"help", no_argument, NULL, 'h'}, 0, "-h, --help"},
};
enum { KNOWN_OPTIONS = sizeof known_options / sizeof *known_options };

/* Returns the kinds of a benchmark as "a, b". */
static const char *kinds_of(const struct benchmark *b) {
	static char text[128];
	size_t n = 0;
	for (int i = 0; b->kinds[i] && n < sizeof text; i++)
		n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? ", " : "", b->kinds[i]);
	return text;
}

/* Prints words behind a title, in lines that fit a terminal. */
static void print_wrapped(const char *title, const char *words) {
	const int indent = (int)strlen(title);
	fputs(title, stdout);
	for (const char *end; strlen(words) > (size_t)(WIDTH - indent); words = end + 1) {
		for (end = words + WIDTH - indent; *end != ' '; end--) {}
		printf("%.*s\n%*s", (int)(end - words), words, indent, "");
	}
	fputs(words, stdout);
}

static int help(const struct benchmark *b) {
	if (!b) {
		puts("usage: kbench BENCHMARK [options]\n"
			 "What services of the kernel cost, each call timed, as a table (TSV):\n");
		for (int i = 0; benchmarks[i]; i++) printf("  %-8s %s\n", benchmarks[i]->name, benchmarks[i]->summary);
		puts("\nkbench BENCHMARK --help lists its options.");
		return usage_end(0);
	}
	printf("usage: kbench %s [options]\n%s.\nn: %s.\n\n", b->name, b->summary, b->n);
	for (int i = 0; i < KNOWN_OPTIONS; i++) {
		const struct known_option *o = &known_options[i];
		if (o->of && !(o->of & b->options)) continue;
		if (o->help) printf("  %s", o->help);
		if (o->option.val == 'n') printf(" (default: %u)", b->count);
		if (o->option.val == LONG_KIND && !b->kinds[0]) continue;
		if (o->option.val == LONG_KIND) printf("      --kind KIND     %s", kinds_of(b));
		if (o->option.val == LONG_LINK) print_wrapped("      --link KIND     ", link_names());
		putchar('\n');
	}
	return usage_end(0);
}

static const char *kind_of(const struct benchmark *b, const char *text) {
	for (int i = 0; b->kinds[i]; i++)
		if (strcmp(b->kinds[i], text) == 0) return b->kinds[i];
	usage_refuse("--kind takes one of: %s", b->kinds[0] ? kinds_of(b) : "(there are no kinds of this)");
}

static void parse_ports(struct run_settings *s, char *text) {
	char *dash = strchr(text, '-');
	if (!dash) usage_refuse("--ports takes a range, as 32768-60999, not '%s'", text);
	*dash = '\0';
	s->port_first = (unsigned)usage_whole_number("--ports", text, 1, PORT_MAX);
	s->port_last = (unsigned)usage_whole_number("--ports", dash + 1, s->port_first, PORT_MAX);
}

/* Refuses a path that does not allow that mode of access(2), or that should be a directory and is not, or the other way
 * round. */
static void check_path(const char *takes, const char *path, int mode, bool directory) {
	struct stat status;
	int error = 0;
	if (access(path, mode) == -1 || stat(path, &status) == -1) error = errno;
	else if (directory && !S_ISDIR(status.st_mode)) error = ENOTDIR;
	else if (!directory && S_ISDIR(status.st_mode)) error = EISDIR;
	if (error) usage_refuse("%s, not '%s': %s", takes, path, strerror(error));
}

static void parse_option(const struct benchmark *b, struct run_settings *s, int option) {
	switch (option) {
	case 'n': s->count = (unsigned)usage_whole_number("--count", optarg, 1, COUNT_MAX); break;
	case '6': s->family = AF_INET6; break;
	case LONG_RUNS: s->runs = (unsigned)usage_whole_number("--runs", optarg, 1, RUNS_MAX); break;
	case LONG_POINTS: s->points = (unsigned)usage_whole_number("--points", optarg, 1, COUNT_MAX); break;
	case LONG_KIND: s->kind = kind_of(b, optarg); break;
	case LONG_SOURCES: s->sources = (unsigned)usage_whole_number("--sources", optarg, 1, SOURCES_MAX); break;
	case LONG_PORTS: parse_ports(s, optarg); break;
	case LONG_STREAMS: s->streams = (unsigned)usage_whole_number("--streams", optarg, 1, NET_STREAMS_MAX); break;
	case LONG_SIZE: s->size = (unsigned)usage_whole_number("--size", optarg, 0, DATAGRAM_MAX); break;
	case LONG_SERVER: s->server = optarg; break;
	case LONG_DIRECTORY: s->directory = optarg; break;
	case LONG_LINK:
		if (!(s->link = link_kind_of(optarg))) usage_refuse("--link takes one of: %s", link_names());
		break;
	}
}

/* Parses the options. Returns false for --help. */
static bool parse(const struct benchmark *b, struct run_settings *s, int argc, char **argv) {
	struct option options[KNOWN_OPTIONS + 1] = {0};
	for (int i = 0, n = 0; i < KNOWN_OPTIONS; i++)
		if (!known_options[i].of || known_options[i].of & b->options) options[n++] = known_options[i].option;
	const char *letters = b->options & KBENCH_OPTION_FAMILY ? ":n:h6" : ":n:h";
	for (int c; (c = getopt_long(argc, argv, letters, options, NULL)) != -1;) {
		if (c == 'h') return false;
		if (c == '?' || c == ':') usage_bad_option(c, argv);
		parse_option(b, s, c);
	}
	if (optind < argc) usage_refuse("kbench %s takes no argument '%s'", b->name, argv[optind]);
	if (s->sources > 1 && s->family == AF_INET6) usage_refuse("the loopback has one IPv6 address: no --sources");
	if (s->family == AF_INET6 && strcmp(link_name(s->link), "ipip") == 0)
		usage_refuse("ipip has IPv4 alone in it: no --ipv6");
	if (b->options & KBENCH_OPTION_DIRECTORY)
		check_path("--directory takes one to write to", s->directory, W_OK | X_OK, true);
	if (s->server) check_path("--server takes a program", s->server, X_OK, false);
	if (s->size != SIZE_OF_FRAME && strcmp(s->kind, "udp") != 0 && strcmp(s->kind, "multicast") != 0)
		usage_refuse("--size is that of a datagram: --kind udp");
	if (s->streams > b->streams_max && b->options & KBENCH_OPTION_STREAMS)
		usage_refuse("%s takes --streams from 1 to %u", b->name, b->streams_max);
	return true;
}

static const struct benchmark *benchmark_of(const char *name) {
	for (int i = 0; benchmarks[i]; i++)
		if (strcmp(benchmarks[i]->name, name) == 0) return benchmarks[i];
	usage_refuse("there is no benchmark '%s'", name);
}

int main(int argc, char **argv) {
	usage_program = "kbench";
	platform_remember_program(argv[0]);
	if (argc == 2 && strcmp(argv[1], FORK_CHILD) == 0) fork_child();
	if (argc < 2) usage_refuse("which benchmark?");
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0) return help(NULL);
	const struct benchmark *b = benchmark_of(argv[1]);
	struct run_settings s = {
		.count = b->count,
		.runs = RUNS,
		.kind = b->kinds[0],
		.family = AF_INET,
		.sources = 1,
		.directory = "/tmp",
		.streams = 1,
		.size = SIZE_OF_FRAME,
		.link = link_kind_of("veth"),
	};
	if (!parse(b, &s, argc - 1, argv + 1)) return help(b);
	if (s.size == SIZE_OF_FRAME) s.size = s.family == AF_INET6 ? DATAGRAM6 : DATAGRAM;
	(void)io_raise_descriptor_limit();
	machine_describe(stdout, argc, argv);
	printf("# linked\t%s\n", platform_linked_statically() ? "statically" : "dynamically");
	printf("# benchmark\t%s\t%s\n# how\t%s\n# kind\t%s\n# n\t%s\n", b->name, b->summary, b->how, s.kind ? s.kind : "-",
		   b->n);
	printf("# runs\t%u, after one of n = %u that is thrown away\n", s.runs, run_warm_up(b, &s));
	return usage_end(run_all(b, &s, stdout));
}
