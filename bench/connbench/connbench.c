/* connbench.c - measures how long connecting and a request take as the number of open connections grows. See
 * connbench(1); after the httpbench of Felix von Leitner's "Benchmarking BSD and Linux" (2003).
 *
 * Other processes hold the open connections, so that the limits of one process do not end the curve. Each has a socket
 * pair, over which it gets one order at a time. This process measures new connections itself. */
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/connbench/ask.h"
#include "bench/connbench/plot.h"
#include "bench/counters.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/others.h"
#include "bench/platform.h"
#include "bench/usage.h"
#include "io/io.h"

enum {
	HOLD_MAX = 10000, /* connections of a process; fewer than the ports of a source address */
	HOLDERS_MAX = 128,
	WARM_UP = 100,      /* requests before the first sample */
	SLOW_BUFFER = 2048, /* bytes of the receive buffer of a slow reader */
	SLOW_BYTES = 64,    /* bytes that a slow reader reads for each new connection */
	ERROR_MAX = 512,
	VERDICT_MAX = 512
};

#define LOOPBACK_SOURCES "127.0.1.0/24"

enum idle { IDLE_SILENT, IDLE_ANSWERED, IDLE_HALF, IDLE_SLOW };

static const char *const idle_name[] = {"silent", "answered", "half", "slow"};

/* The times of a new connection, in ns. */
struct sample {
	int64_t connect;
	struct ask_times times;
};

static io_loop *loop;          /* the loop of this process */
static const char *source_net; /* the value of --source; NULL: the kernel chooses addresses */
static struct target target;
static struct sources sources;
static enum idle idle;
static struct plot *plot; /* of --plot; NULL: none */

static int connect_from(uint32_t source, int receive_buffer, int64_t *connect_ns, struct ask_stop *stop) {
	return ask_connect(loop, &target, &sources, source, receive_buffer, connect_ns, stop);
}

/* --- the processes that hold connections --- */

enum order { ORDER_OPEN = 'o', ORDER_SAMPLE = 's' };

struct reply {
	struct ask_times times;
	struct ask_stop stop; /* its strings are constants of this program, and so valid in both processes */
};

static size_t half_length(void) { return idle == IDLE_HALF ? target.request.length / 2 : 0; }

/* Brings a connection into the idle state that --idle names. */
static int settle(int fd, struct ask_stop *stop) {
	struct ask_times ignored;
	switch (idle) {
	case IDLE_SILENT: return 0;
	case IDLE_ANSWERED: return ask(loop, fd, &target, 0, &ignored, stop);
	case IDLE_HALF: return ask_send(loop, fd, target.request.at, half_length(), stop);
	case IDLE_SLOW: return ask_send(loop, fd, target.request.at, target.request.length, stop);
	}
	return 0;
}

/* Returns -1 if a held connection has been closed. Slow readers are not watched: see read_slowly(). */
static int check_held(struct ask_stop *stop) {
	char byte;
	if (io_wait(loop, 0) == -1) return ask_stopped(stop, "wait");
	for (int fd; (fd = io_canread(loop)) != -1;) {
		ssize_t n = io_tryread(loop, fd, &byte, 1);
		if (n == -1 && errno == EAGAIN) continue;
		if (n >= 0) errno = ECONNRESET;
		return ask_stopped(stop, "idle connection");
	}
	return 0;
}

/* Reads a little on the connection of a slow reader. Returns -1 if the connection has been closed. */
static int read_slowly(int fd, struct ask_stop *stop) {
	char some[SLOW_BYTES];
	ssize_t n = io_tryread(loop, fd, some, sizeof some);
	if (n > 0 || (n == -1 && errno == EAGAIN)) return 0;
	if (n == 0) errno = ECONNRESET;
	return ask_stopped(stop, "slow connection");
}

/* Waits for the end of an idle connection from here on. */
static int keep(int fd, struct ask_stop *stop) {
	if (idle == IDLE_SLOW || io_wantread(loop, fd) == 0) return 0;
	return ask_stopped(stop, "wait");
}

static int execute(enum order order, int *held, unsigned *count, uint32_t first_source, struct reply *reply) {
	int64_t connect_ns;
	if (order == ORDER_SAMPLE) {
		errno = EINVAL;
		if (!*count) return ask_stopped(&reply->stop, "sample without connections");
		int fd = held[(unsigned)random() % *count];
		if (ask(loop, fd, &target, half_length(), &reply->times, &reply->stop) == -1) return -1;
		if (idle == IDLE_HALF && settle(fd, &reply->stop) == -1) return -1;
		return keep(fd, &reply->stop);
	}
	int fd = connect_from(first_source + *count, idle == IDLE_SLOW ? SLOW_BUFFER : 0, &connect_ns, &reply->stop);
	if (fd == -1) return -1;
	held[(*count)++] = fd;
	if (idle == IDLE_SLOW && read_slowly(held[(unsigned)random() % *count], &reply->stop) == -1) return -1;
	return settle(fd, &reply->stop) == -1 ? -1 : keep(fd, &reply->stop);
}

/* Runs a child process, which executes the parent's orders. argument: the number of its first source. */
__attribute__((noreturn)) static void hold(int parent, const void *argument) {
	uint32_t first_source = *(const uint32_t *)argument;
	static int held[HOLD_MAX];
	unsigned count = 0;
	io_loop_free(loop); /* it is the parent's */
	loop = io_loop_new();
	if (!loop) _exit(1);
	signal(SIGINT, SIG_IGN); /* the parent ends this process */
	signal(SIGTERM, SIG_IGN);
	platform_end_with_parent();
	for (char order; read(parent, &order, 1) == 1;) {
		struct reply reply = {0};
		if (check_held(&reply.stop) == 0) (void)execute((enum order)order, held, &count, first_source, &reply);
		if (write(parent, &reply, sizeof reply) != sizeof reply) break;
	}
	_exit(0);
}

static int order(int holder, enum order order, struct ask_times *times, struct ask_stop *stop) {
	char byte = (char)order;
	struct reply reply;
	if (send(holder, &byte, 1, MSG_NOSIGNAL) != 1 || recv(holder, &reply, sizeof reply, MSG_WAITALL) != sizeof reply) {
		errno = ESRCH;
		return ask_stopped(stop, "process that holds connections");
	}
	*times = reply.times;
	*stop = reply.stop;
	return stop->call ? -1 : 0;
}

/* --- the run --- */

struct curve {
	unsigned connections, every, samples, per_holder;
};

static int take_sample(unsigned open, const int *holder, unsigned per_holder, struct ask_stop *stop) {
	struct sample fresh;
	struct ask_times held = {0};
	int fd = connect_from((uint32_t)random(), 0, &fresh.connect, stop);
	if (fd == -1) return -1;
	int result = ask(loop, fd, &target, 0, &fresh.times, stop);
	io_close(loop, fd);
	bool sampled = open && idle != IDLE_SLOW;
	if (result == 0 && sampled)
		result = order(holder[(unsigned)random() % open / per_holder], ORDER_SAMPLE, &held, stop);
	if (result == -1) return -1;
	if (plot)
		plot_row(plot,
				 &(struct plot_row){
					 .open = open, .connect = fresh.connect, .whole_new = fresh.times.whole, .whole_idle = held.whole});
	printf("%u\t%lld\t%lld\t%lld\t", open, (long long)fresh.connect, (long long)fresh.times.first_byte,
		   (long long)fresh.times.whole);
	if (sampled) printf("%lld\t%lld\n", (long long)held.first_byte, (long long)held.whole);
	else printf("NA\tNA\n");
	return 0;
}

/* Opens all connections, taking samples in between. Returns how many are open at the end. */
static unsigned run_curve(const struct curve *p, struct ask_stop *stop) {
	static int holder[HOLDERS_MAX];
	unsigned open = 0;
	struct ask_times ignored;
	while (true) {
		for (unsigned i = 0; open % p->every == 0 && i < p->samples; i++)
			if (take_sample(open, holder, p->per_holder, stop) == -1 || ferror(stdout) /* broken pipe */ ||
				interrupt_came)
				return open;
		if (open == p->connections || interrupt_came) return open;
		unsigned h = open / p->per_holder;
		if (open % p->per_holder == 0 && (holder[h] = ask_fork(hold, &open)) == -1) {
			(void)ask_stopped(stop, "fork");
			return open;
		}
		if (order(holder[h], ORDER_OPEN, &ignored, stop) == -1) return open;
		open++;
	}
}

static const char *limit_of(int error) {
	switch (error) {
	case EMFILE:
	case ENFILE: return "descriptors: ulimit -n sets their limit";
	case EADDRNOTAVAIL: return "ports: more source addresses help, --source 127.0.1.0/24";
	case ENOMEM:
	case ENOBUFS: return "memory";
	case ETIMEDOUT: return "time: no answer in 30 seconds";
	case ECONNREFUSED: return "the server: it does not listen";
	case ESRCH: return "this program: a process of it has ended";
	case ECONNRESET: return "the server: it closed a connection";
	default: return "the server";
	}
}

static int warm_up(struct ask_stop *stop) {
	for (int i = 0; i < WARM_UP && !interrupt_came; i++) {
		struct sample ignored;
		int fd = connect_from((uint32_t)i, 0, &ignored.connect, stop);
		if (fd == -1) return -1;
		int result = ask(loop, fd, &target, 0, &ignored.times, stop);
		io_close(loop, fd);
		if (result == -1) return -1;
	}
	return 0;
}

static const char help[] = "usage: connbench [options] URL\n"
						   "Measures connecting and a request against the number of open connections.\n"
						   "\n"
						   "  -n CONNECTIONS  to open (default: 1000)\n"
						   "  -i EVERY        so many of them, samples are taken (default: 10)\n"
						   "  -s SAMPLES      each time (default: 5)\n"
						   "      --idle KIND the open connections: silent, answered (default: they had one\n"
						   "                  answer), half (a request), slow (readers; the URL should be\n"
						   "                  large)\n"
						   "      --source NET connect from the addresses of NET, as 127.0.1.0/24 (the\n"
						   "                  default for many connections on loopback)\n"
						   "      --plot FILE draw the table there, as SVG, with gnuplot\n"
						   "  -h, --help\n";

static enum idle idle_of(const char *name) {
	for (size_t i = 0; i < sizeof idle_name / sizeof *idle_name; i++)
		if (strcmp(idle_name[i], name) == 0) return (enum idle)i;
	usage_refuse("--idle is silent, answered, half or slow, not '%s'", name);
}

enum { LONG_IDLE = 256, LONG_SOURCE, LONG_PLOT };

static void take_source(const char *net) {
	if (sources_parse(&sources, net) == -1)
		usage_refuse("--source takes an address or a network like 127.0.1.0/24, not '%s'", net);
	source_net = net;
}

static bool on_loopback(void) {
	const struct sockaddr_in *in = (const struct sockaddr_in *)&target.address;
	return in->sin_family == AF_INET && ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

/* Returns how many connections the run opens: those that are held, and one for each sample, whose port remains taken
 * for a while (TIME_WAIT). */
static uint64_t connections_in_all(const struct curve *p) {
	return p->connections + WARM_UP + ((uint64_t)p->connections / p->every + 1) * p->samples;
}

/* Returns the path of --plot, or NULL. */
static const char *parse_options(struct curve *p, int argc, char **argv) {
	static const struct option long_options[] = {{"idle", required_argument, NULL, LONG_IDLE},
												 {"source", required_argument, NULL, LONG_SOURCE},
												 {"plot", required_argument, NULL, LONG_PLOT},
												 {"help", no_argument, NULL, 'h'},
												 {0}};
	char error[ERROR_MAX];
	const char *plot_path = NULL;
	struct target_options request = {.method = "GET"};
	*p = (struct curve){.connections = 1000, .every = 10, .samples = 5};
	idle = IDLE_ANSWERED;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":n:i:s:h", long_options, NULL)) != -1;) {
		switch (c) {
		case 'n': p->connections = (unsigned)usage_whole_number("-n", optarg, 1, (double)HOLD_MAX * HOLDERS_MAX); break;
		case 'i': p->every = (unsigned)usage_whole_number("-i", optarg, 1, 1e9); break;
		case 's': p->samples = (unsigned)usage_whole_number("-s", optarg, 1, 1e6); break;
		case LONG_IDLE: idle = idle_of(optarg); break;
		case LONG_SOURCE: take_source(optarg); break;
		case LONG_PLOT: plot_path = optarg; break;
		case 'h': usage_help(help);
		default: usage_bad_option(c, argv);
		}
	}
	if (argc - optind != 1) usage_refuse(optind == argc ? "the URL is missing" : "more than one URL");
	if (target_make(&target, argv[optind], &request, NULL, error, sizeof error) == -1) usage_refuse("%s", error);
	if (!source_net && connections_in_all(p) > SOURCE_CONNECTIONS_MAX && on_loopback()) take_source(LOOPBACK_SOURCES);
	if (target.host) usage_refuse("'%s': connbench speaks no TLS", argv[optind]);
	if (sources.count) sources_require(&sources, target.address.ss_family, target.url);
	return plot_path;
}

/* Prints a verdict like those of httpbench(1), and why. */
static void print_verdict(const struct ask_stop *stop, const struct counters *before, struct others *others) {
	struct counters now;
	char why[VERDICT_MAX] = "", took[OTHERS_TEXT];
	counters_read(&now);
	now = counters_since(&now, before);
	const char *verdict = "PASS";
	const bool disturbed = others_end(others, took);
	if (disturbed) snprintf(why, sizeof why, "%s", took);
	if (stop->call) verdict = "LIMIT";
	else if (interrupt_came) verdict = "FAIL";
	else if (disturbed || counters_stolen(&now, why, sizeof why)) verdict = "NOISY";
	else if (counters_moved(&now, why, sizeof why)) verdict = "XPASS";
	if (stop->call) snprintf(why, sizeof why, "%s", limit_of(stop->error));
	else if (interrupt_came) snprintf(why, sizeof why, "interrupted");
	printf("# verdict\t%s\t%s\n", verdict, why);
}

int main(int argc, char **argv) {
	struct curve plan;
	struct ask_stop stop = {0};
	unsigned open = 0;
	usage_program = "connbench";
	setvbuf(stdout, NULL, _IOLBF, 0); /* so that samples are not lost, however the run ends */
	const char *plot_path = parse_options(&plan, argc, argv);
	plan.per_holder = machine_connections(HOLD_MAX);
	if (plan.connections > (unsigned long)plan.per_holder * HOLDERS_MAX)
		usage_refuse("%u connections take more than %d processes with %u each, a limit that ulimit -n sets",
					 plan.connections, HOLDERS_MAX, plan.per_holder);
	signal(SIGPIPE, SIG_IGN);
	loop = io_loop_new();
	if (!loop) usage_refuse("cannot wait for events: %s", strerror(errno));
	if (plot_path) plot = plot_begin(plot_path, "Connections to a server, and requests, against those that are open");
	machine_describe(stdout, argc, argv);
	printf("# idle\t%s\n# source\t%s\n", idle_name[idle], source_net ? source_net : "-");
	printf("# open\tconnect_ns\tfirst_byte_new_ns\twhole_new_ns\tfirst_byte_idle_ns\twhole_idle_ns\n");
	interrupt_catch();
	struct counters before;
	struct others *others = others_begin((const struct sockaddr *)&target.address, NULL);
	counters_read(&before);
	if (warm_up(&stop) == 0) open = run_curve(&plan, &stop);
	if (interrupt_came) {
		printf("# interrupted\tat %u connections\n", open);
		stop = (struct ask_stop){0}; /* a wait fails, too, if it is interrupted */
	}
	if (stop.call)
		printf("# limit\t%s at %u connections: %s: %s\n", limit_of(stop.error), open, stop.call, ask_why(&stop));
	print_verdict(&stop, &before, others);
	const int drawn = plot ? plot_end(plot) : 0;
	target_free(&target);
	io_loop_free(loop);
	if (!stop.call) return usage_end(drawn == 0 ? 0 : 1);
	fprintf(stderr, "connbench: ended at %u connections by %s (%s: %s)\n", open, limit_of(stop.error), stop.call,
			ask_why(&stop));
	return usage_end(3);
}
