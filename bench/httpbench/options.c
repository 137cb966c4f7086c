/* options.c - see options.h. Here are the table of options, from which parsing and --help come, and what each option
 * does. To add an option is to add a row. */
#include "bench/httpbench/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/client/frames.h"
#include "bench/httpbench/rank.h"
#include "bench/httpbench/transport/qpack.h"
#include "bench/httpbench/transport/quic.h"
#include "bench/usage.h"
#include "io/io.h"
#include "io/version.h"

enum {
	CLIENTS_MAX = 256,
	CONNECTIONS_MAX = 1000000,
	DEPTH_MAX = 1024,
	RATE_MAX = 10000000,
	ERROR_MAX = 512,
	WINDOW_MAX = INT32_MAX, /* RFC 9113, section 6.9.1 */
	WINDOW_FIRST = 65535,   /* the initial window of a connection: it cannot be made smaller */
	WINDOW_DEFAULT = 1 << 30,
	CONTENT_MAX = 256 * 1024 * 1024, /* as FRAMES_MESSAGE_MAX */
	MESSAGE_DEFAULT = 32,
	SWITCHING_PROTOCOLS = 101,
	NOT_GIVEN = -1
};

#define TIME_DEFAULT_NS INT64_C(10000000000) /* of a run, and for an answer */

/* What the command line says. */
struct command {
	struct options o;
	struct target_options request;
	const char *urls_path;
	double skew;          /* of --zipf */
	int64_t message_size; /* NOT_GIVEN: the default */
};

struct row {
	const char *name;     /* with its dashes; NULL: the end of the table */
	char letter;          /* '\0': none */
	const char *argument; /* the word for its value; NULL: it has none */
	const char *help;     /* lines of at most 52 characters; NULL: the row before says it */
	/* Parses the value, or refuses it. */
	void (*parse)(struct command *c, const struct row *row, char *text);
	size_t place; /* offset in struct command */
	double least, most;
};

/* The kinds of values. Each is a macro for the last fields of a row, which names a member of struct command and does
 * not compile if its type is another. */
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a type */
#define PLACE(type, member) .place = _Generic(((struct command *)0)->member, type : offsetof(struct command, member))
#define FLAG(member) .parse = take_flag, PLACE(bool, member)
#define TEXT(member) .parse = take_text, PLACE(const char *, member)
#define COUNT(member, low, high) .parse = take_count, PLACE(unsigned, member), .least = (low), .most = (high)
#define LONG_COUNT(member, low, high) .parse = take_long_count, PLACE(uint64_t, member), .least = (low), .most = (high)
#define NUMBER(member, low, high) .parse = take_number, PLACE(double, member), .least = (low), .most = (high)
#define SECONDS(member, low, high) .parse = take_seconds, PLACE(int64_t, member), .least = (low), .most = (high)
#define OWN(function) .parse = (function)

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

/* Refuses a URL, which is on that line of the file at path, if there is one. */
__attribute__((noreturn)) static void refuse_url(const char *path, const unsigned *line, const char *error) {
	if (path) usage_refuse("%s, line %u: %s", path, *line, error);
	usage_refuse("%s", error);
}

/* Makes the targets of the URLs. path: the file that has the URLs, on these lines, or NULL. */
static void make_targets(struct plan *p, const struct target_options *o, char **url, unsigned count, const char *path,
						 const unsigned *line) {
	char error[ERROR_MAX];
	if (count > INPUT_URLS_MAX) usage_refuse("more than %d URLs", INPUT_URLS_MAX);
	p->target = calloc(count, sizeof *p->target);
	p->share = calloc(count, sizeof *p->share);
	if (!p->target || !p->share) usage_refuse("no memory for %u URLs", count);
	for (; p->targets < count; p->targets++) {
		struct target *t = &p->target[p->targets];
		int result = target_make(t, url[p->targets], o, p->target, error, sizeof error);
		if (result == 0 &&
			(memcmp(&t->address, &p->target->address, sizeof t->address) != 0 || !same(t->host, p->target->host)))
			result = snprintf(error, sizeof error, "%s is not on the server of %s", t->url, p->target->url);
		if (result == 0 && p->http3 && !t->host)
			result = snprintf(error, sizeof error, "%s: --http3 takes https://", t->url);
		if (result != 0) refuse_url(path, path ? &line[p->targets] : NULL, error);
		if (p->http3 && !qpack_request(t->field, t->fields, p->content.length, &t->stream))
			usage_refuse("no memory for %u URLs", count);
	}
}

/* Gives the n-th target the weight 1 / n^skew (Zipf), so that the first is the most popular. With 0 all have the same.
 */
static void make_shares(struct plan *p, double skew) {
	double sum = 0, at = 0;
	for (unsigned i = 0; i < p->targets; i++) sum += pow(i + 1, -skew);
	for (unsigned i = 0; i < p->targets; i++) p->share[i] = at += pow(i + 1, -skew) / sum;
}

static void check_series(const struct options *o) {
	if (o->search && o->sweep) usage_refuse("--search and --sweep exclude each other");
	if (o->plan.rate > 0 || o->plan.stages.count || o->plan.requests)
		usage_refuse("--search and --sweep choose the rate: without --rate, --stages and --requests");
	if (o->json_path || o->tsv_path || o->hlog_path || o->tui)
		usage_refuse("--search and --sweep write to stdout alone");
}

bool output_is_stdout(const char *name) { return name && strcmp(name, "-") == 0; }

int outputs_on_stdout(const struct options *o) {
	return output_is_stdout(o->json_path) + output_is_stdout(o->tsv_path) + output_is_stdout(o->hlog_path);
}

static void check_outputs(const struct options *o) {
	if (outputs_on_stdout(o) + o->tui > 1)
		usage_refuse("only one of --json -, --tsv -, --hlog - and --tui may write to stdout");
}

/* Refuses options that do not go with a WebSocket. */
static void check_websocket(const struct plan *p, const struct target_options *o) {
	static const char *const own[] = {"Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
									  "Sec-WebSocket-Extensions"};
	if (p->http2 || p->http3) usage_refuse("--websocket is over HTTP/1.1: without --http2 and --http3");
	if (o->method) usage_refuse("--websocket begins with GET: without --method");
	if (p->expected.at || p->expected.status)
		usage_refuse("--websocket expects the echo: without --expect and --status");
	for (unsigned i = 0; i < o->headers; i++)
		for (unsigned j = 0; j < sizeof own / sizeof *own; j++)
			if (input_is_field(o->header[i], own[j])) usage_refuse("--websocket has a field %s of its own", own[j]);
}

/* Refuses options that do not go with HTTP/3, and HTTP/3 in a build without it. */
static void check_http3(const struct plan *p, const struct target_options *o) {
	char libraries[QUIC_TEXT];
	if (!quic_libraries(libraries)) usage_refuse("--http3: this build has %s", libraries);
	if (p->http2) usage_refuse("--http2 and --http3 exclude each other");
	if (o->unix_path) usage_refuse("--http3 is over UDP: without --unix");
}

/* Makes the message, unless --body gave it, the frame with it, and the expected echo. */
static void make_message(struct plan *p, size_t length) {
	char *message = p->content.at;
	if (message) length = p->content.length;
	else if ((message = malloc(length + 1)))
		for (size_t i = 0; i < length; i++) message[i] = (char)('a' + i % 26);
	p->content = (struct target_bytes){malloc(frames_size(length)), frames_size(length)};
	if (!message || !p->content.at) usage_refuse("no memory for a message of %zu bytes", length);
	frames_make(p->content.at, FRAMES_BINARY, message, length);
	p->expected = (struct response_expected){SWITCHING_PROTOCOLS, message, length};
}

/* --- the kinds of values --- */

static void *place(struct command *c, const struct row *row) { return (char *)c + row->place; }

static void take_flag(struct command *c, const struct row *row, char *text) {
	(void)text;
	*(bool *)place(c, row) = true;
}

static void take_text(struct command *c, const struct row *row, char *text) { *(const char **)place(c, row) = text; }

static void take_count(struct command *c, const struct row *row, char *text) {
	*(unsigned *)place(c, row) = (unsigned)usage_whole_number(row->name, text, row->least, row->most);
}

static void take_long_count(struct command *c, const struct row *row, char *text) {
	*(uint64_t *)place(c, row) = usage_whole_number(row->name, text, row->least, row->most);
}

static void take_number(struct command *c, const struct row *row, char *text) {
	*(double *)place(c, row) = usage_number(row->name, text, row->least, row->most);
}

/* Stores nanoseconds. */
static void take_seconds(struct command *c, const struct row *row, char *text) {
	*(int64_t *)place(c, row) = (int64_t)(usage_seconds(row->name, text, row->least, row->most) * 1e9);
}

/* --- options with rules of their own --- */

static void take_arrival(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (strcmp(text, "poisson") != 0 && strcmp(text, "constant") != 0)
		usage_refuse("--arrival is poisson or constant, not '%s'", text);
	c->o.plan.arrival = *text == 'p' ? ARRIVAL_POISSON : ARRIVAL_CONSTANT;
}

static void take_header(struct command *c, const struct row *row, char *text) {
	struct target_options *request = &c->request;
	(void)row;
	if (request->headers == TARGET_HEADERS_MAX) usage_refuse("more than %d header fields", TARGET_HEADERS_MAX);
	if (!input_is_header(text)) usage_refuse("--header takes 'Name: value', not '%s'", text);
	if (strpbrk(text, "\r\n")) usage_refuse("--header takes one line");
	request->header[request->headers++] = text;
}

static void take_heads(struct command *c, const struct row *row, char *text) {
	(void)row;
	input_heads(&c->o.plan, text);
}

static void take_method(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (!*text || strpbrk(text, " \t\r\n")) usage_refuse("--method takes a word, not '%s'", text);
	c->request.method = text;
}

static void take_body(struct command *c, const struct row *row, char *text) {
	struct target_bytes *content = &c->o.plan.content;
	content->at = input_file(row->name, text, CONTENT_MAX, &content->length);
	if (!content->length) usage_refuse("%s is empty: leave --body out", text);
}

static void take_message_size(struct command *c, const struct row *row, char *text) {
	c->message_size = (int64_t)usage_whole_number(row->name, text, 0, CONTENT_MAX);
}

static void take_unix(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (!*text) usage_refuse("--unix takes the path of a socket, not ''");
	c->request.unix_path = text;
}

static void take_source(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (sources_parse(&c->o.plan.sources, text) == -1)
		usage_refuse("--source takes an address or a network like 127.0.1.0/24, not '%s'", text);
}

static void take_stages(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (stages_parse(&c->o.plan.stages, text, RATE_MAX) == -1)
		usage_refuse("--stages takes up to %d stages, in whole seconds, as '10s:1000,1m:5000', not '%s'", STAGES_MAX,
					 text);
}

static void take_search(struct command *c, const struct row *row, char *text) {
	(void)row;
	if (goal_parse(&c->o.goal, text) == -1) usage_refuse("--search takes a goal like 'p99<5ms', not '%s'", text);
	c->o.search = true;
}

static void take_expect(struct command *c, const struct row *row, char *text) {
	struct response_expected *expected = &c->o.plan.expected;
	expected->at = input_file(row->name, text, INPUT_FILE_MAX, &expected->length);
}

static void take_profile(struct command *c, const struct row *row, char *text) {
	c->o.profile = (pid_t)usage_whole_number(row->name, text, 1, INT32_MAX);
}

__attribute__((noreturn)) static void take_version(struct command *c, const struct row *row, char *text) {
	(void)c, (void)row, (void)text;
	char http3[QUIC_TEXT];
	(void)quic_libraries(http3);
	printf("httpbench %s (%s; %s, nghttp2 %s; %s)\n", GATLING_VERSION, io_mechanism(), OpenSSL_version(OPENSSL_VERSION),
		   nghttp2_version(0)->version_str, http3);
	exit(usage_end(0));
}

static void take_help(struct command *c, const struct row *row, char *text);

/* In the order of --help. */
static const struct row table[] = {
	{"--connections", 'c', "N", "connections open at a time (default: 64)",
	 COUNT(o.plan.connections, 1, CONNECTIONS_MAX)},
	{"--threads", 't', "N", "clients, a thread each (default: 1)", COUNT(o.plan.clients, 1, CLIENTS_MAX)},
	{"--duration", 'd', "SECONDS", "how long (default: 10)", SECONDS(o.plan.duration_ns, 0.001, 1e6)},
	{"--requests", 'n', "N", "how many requests", LONG_COUNT(o.plan.requests, 1, 1e15)},
	{"--rate", 'R', "N", "open loop: N requests a second are due, whether\nthose before are answered or not",
	 NUMBER(o.plan.rate, 0.001, RATE_MAX)},
	{"--stages", 0, "T:RATE,...", "rates that follow each other, as '10s:1000,1m:5000'", OWN(take_stages)},
	{"--arrival", 0, "KIND", "of these: poisson (default) or constant", OWN(take_arrival)},
	{"--per-connection", 'k', "N", "requests on a connection (default: no limit)",
	 COUNT(o.plan.per_connection, 1, 1e9)},
	{"--pipeline", 'p', "N", "requests under way on a connection (default: 1)", COUNT(o.plan.depth, 1, DEPTH_MAX)},
	{"--http2", 0, NULL, "each request is a stream of HTTP/2 (with prior\nknowledge, or ALPN)", FLAG(o.plan.http2)},
	{"--http3", 0, NULL, "each request is a stream of HTTP/3 (https:// only)", FLAG(o.plan.http3)},
	{"--window", 0, "BYTES, --connection-window BYTES", "flow control of both (default: 1 GiB)",
	 COUNT(o.plan.window, 1, WINDOW_MAX)},
	{"--connection-window", 0, "BYTES", NULL, COUNT(o.plan.window_all, WINDOW_FIRST, WINDOW_MAX)},
	{"--websocket", 0, NULL, "each request is a message over a WebSocket, and its\nanswer the echo",
	 FLAG(o.plan.websocket)},
	{"--message-size", 0, "N", "bytes of it, without --body (default: 32)", OWN(take_message_size)},
	{"--ramp", 0, "SECONDS", "open the connections over that time (closed loop)", SECONDS(o.plan.ramp_ns, 0, 1e6)},
	{"--timeout", 'T', "SECONDS", "for an answer (default: 10)", SECONDS(o.plan.timeout_ns, 0.1, 3600)},
	{"--header", 'H', "LINE", "a field of every request; may be repeated", OWN(take_header)},
	{"--heads", 0, "FILE",
	 "further fields of each request: one of several heads,\nwhich empty lines separate, at random (HTTP/1.1)",
	 OWN(take_heads)},
	{"--method", 'X', "NAME", "(default: GET, with --body POST)", OWN(take_method)},
	{"--body", 0, "FILE", "the content of every request, or message", OWN(take_body)},
	{"--unix", 0, "PATH", "connect to a unix socket", OWN(take_unix)},
	{"--source", 0, "NET", "connect from the addresses of NET, as 127.0.1.0/24", OWN(take_source)},
	{"--urls", 0, "FILE", "URLs, one a line, instead of those as arguments", TEXT(urls_path)},
	{"--zipf", 0, "S", "ask for the n-th URL 1/n^S as often (default: 0)", NUMBER(skew, 0, 10)},
	{"--insecure", 0, NULL, "https:// with any certificate", FLAG(o.plan.tls.insecure)},
	{"--resume", 0, NULL, "https:// with the session of an earlier connection", FLAG(o.plan.tls.resume)},
	{"--seed", 0, "N", "of all that is random (default: 1)", LONG_COUNT(o.plan.seed, 0, 1e15)},
	{"--hold", 0, NULL, "with -R, open all connections at the beginning", FLAG(o.plan.hold)},
	{"--backends", 0, "NAME,...", "programs that work for the server, as php-fpm", TEXT(o.plan.backends)},
	{"--rank", 0, "N, --ranks N",
	 "one of several generators, from 0, that share rate\n"
	 "and requests; also from MPI, Slurm, Kubernetes, GNU\n"
	 "parallel; %r in the name of a FILE becomes the rank",
	 COUNT(o.plan.rank, 0, RANK_MAX - 1)},
	{"--ranks", 0, "N", NULL, COUNT(o.plan.ranks, 1, RANK_MAX)},
	{"--start-at", 0, "TIME", "begin then, in seconds since the epoch", NUMBER(o.start_s, 0, 1e12)},
	{"--search", 0, "GOAL", "find the highest rate that meets GOAL, as 'p99<5ms'", OWN(take_search)},
	{"--sweep", 0, NULL, "rates from 10 to 110 % of what closed loop reaches", FLAG(o.sweep)},
	{"--status", 0, "CODE", "of each answer (default: 2xx or 304)", COUNT(o.plan.expected.status, 200, 599)},
	{"--expect", 0, "FILE", "each answer has these bytes", OWN(take_expect)},
	{"--tui", 0, NULL, "watch the run on the whole terminal", FLAG(o.tui)},
	{"--json", 0, "FILE", "the result; -: to stdout, and the report to stderr", TEXT(o.json_path)},
	{"--tsv", 0, "FILE", "a line a second (-: to stdout)", TEXT(o.tsv_path)},
	{"--hlog", 0, "FILE", "histograms of each second (HdrHistogram; -: stdout)", TEXT(o.hlog_path)},
	{"--profile", 0, "PID", "sample process PID during the run (perf.data)", OWN(take_profile)},
	{"--version", 0, NULL, "print the version and the libraries", OWN(take_version)},
	{"--help", 'h', NULL, "", OWN(take_help)},
	{0},
};

enum {
	ROWS = sizeof table / sizeof table[0] - 1,
	LONG = 256 /* what getopt_long() returns for a long option: this and the index of its row */
};

static void print_row(const struct row *row) {
	enum { LABEL = 64, LABEL_WIDTH = 24 };
	char label[LABEL];
	snprintf(label, sizeof label, "%c%c%c %s%s%s", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
			 row->letter ? ',' : ' ', row->name, row->argument ? " " : "", row->argument ? row->argument : "");
	if (strlen(label) > LABEL_WIDTH || !*row->help) {
		printf("  %s\n", label);
		*label = '\0';
	}
	for (const char *line = row->help; *line;) {
		const int end = (int)strcspn(line, "\n");
		printf("  %-*s %.*s\n", LABEL_WIDTH, label, end, line);
		*label = '\0';
		line += end + (line[end] == '\n');
	}
}

__attribute__((noreturn)) static void take_help(struct command *c, const struct row *row, char *text) {
	(void)c, (void)row, (void)text;
	fputs("usage: httpbench [options] URL...\n"
		  "       httpbench merge [--json FILE] LOG...\n"
		  "       httpbench compare [--fail CONDITION] LOG LOG\n"
		  "Loads a web server and measures what its clients see.\n\n",
		  stdout);
	for (row = table; row->name; row++)
		if (row->help) print_row(row);
	exit(usage_end(0));
}

/* --- the command line as a whole --- */

static void read_options(struct command *c, int argc, char **argv) {
	char letters[2 * ROWS + 2] = ":", *letter = letters + 1;
	struct option names[ROWS + 1] = {0};
	for (int i = 0; i < ROWS; i++) {
		const struct row *row = &table[i];
		if (row->letter) *letter++ = row->letter;
		if (row->letter && row->argument) *letter++ = ':';
		names[i] =
			(struct option){row->name + strlen("--"), row->argument ? required_argument : no_argument, NULL, LONG + i};
	}
	opterr = 0;
	for (int found; (found = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
		const struct row *row = table;
		if (found == '?' || found == ':') usage_bad_option(found, argv);
		if (found >= LONG) row = &table[found - LONG];
		else
			while (row->letter != found) row++;
		row->parse(c, row, optarg);
	}
}

/* Checks what depends on several options about requests, and fills in their defaults. */
static void settle_requests(struct command *c) {
	struct plan *p = &c->o.plan;
	struct target_options *request = &c->request;
	const bool sized = c->message_size != NOT_GIVEN;
	const bool streams = p->http2 || p->http3;
	p->tls.protocol = p->http3 ? TLS_HTTP3 : p->http2 ? TLS_HTTP2 : TLS_HTTP1;
	request->fields = streams;
	request->websocket = p->websocket;
	if (sized && !p->websocket) usage_refuse("--message-size is of --websocket");
	if (sized && p->content.at) usage_refuse("--message-size and --body exclude each other");
	if (p->http3) check_http3(p, request);
	if (p->websocket) check_websocket(p, request);
	else request->content_length = p->content.length;
	for (unsigned i = 0; !streams && i < request->headers; i++) input_check_header("--header", request->header[i]);
	if (p->heads && (streams || p->websocket)) usage_refuse("--heads is of plain HTTP/1.1");
	request->open = p->heads;
	if (!request->method) request->method = request->content_length ? "POST" : "GET";
	if (p->websocket) make_message(p, sized ? (size_t)c->message_size : MESSAGE_DEFAULT);
	if (!streams && (p->window != WINDOW_DEFAULT || p->window_all != WINDOW_DEFAULT))
		usage_refuse("--window and --connection-window are of HTTP/2 and HTTP/3: add --http2 or --http3");
}

/* Does the same for the options about load, and takes this generator's part of it. */
static void settle_load(struct plan *p) {
	if (p->clients > p->connections)
		usage_refuse("--threads %u: there are more threads than --connections %u", p->clients, p->connections);
	if (p->stages.count && (p->rate > 0 || p->duration_ns || p->requests))
		usage_refuse("--stages says at which rates, and how long: without --rate, --duration and --requests");
	if (p->stages.count) {
		p->rate = stages_mean(&p->stages);
		p->duration_ns = (int64_t)(p->stages.stage[p->stages.count - 1].until_s * 1e9);
		stages_divide(&p->stages, p->ranks);
	}
	if (p->hold && !plan_open_loop(p)) usage_refuse("--hold is of open loop: add --rate, or use gatling-hold(1)");
	if (p->rank >= p->ranks && p->ranks > 1) usage_refuse("rank %u of %u: the first is 0", p->rank, p->ranks);
	if (p->sources.count && p->ranks > 1) sources_share(&p->sources, p->rank, p->ranks);
	if (p->ranks > 1 && !p->backends) p->backends = usage_program; /* the other ranks may be on this machine */
	p->rate /= p->ranks;
	if (p->requests && p->requests < p->ranks) usage_refuse("--requests has to be at least --ranks");
	if (p->requests) p->requests = (p->requests + p->ranks - 1 - p->rank % p->ranks) / p->ranks;
	if (!p->duration_ns && !p->requests) p->duration_ns = TIME_DEFAULT_NS;
}

void options_parse(struct options *o, int argc, char **argv) {
	struct command c = {.message_size = NOT_GIVEN};
	struct plan *p = &c.o.plan;
	*p = (struct plan){.clients = 1,
					   .connections = 64,
					   .depth = 1,
					   .seed = 1,
					   .ranks = 1,
					   .timeout_ns = TIME_DEFAULT_NS,
					   .window = WINDOW_DEFAULT,
					   .window_all = WINDOW_DEFAULT};
	rank_from_environment(&p->rank, &p->ranks);
	read_options(&c, argc, argv);
	settle_requests(&c);
	if (c.o.search || c.o.sweep) check_series(&c.o);
	check_outputs(&c.o);
	if (c.o.tui && !isatty(STDOUT_FILENO)) usage_refuse("--tui needs a terminal on stdout");
	if (c.urls_path && optind < argc) usage_refuse("the URLs come from %s: not '%s', too", c.urls_path, argv[optind]);
	if (optind == argc && !c.urls_path) usage_refuse("the URL is missing");
	settle_load(p);
	if (c.urls_path) input_urls(&c.o.urls, c.urls_path);
	if (c.urls_path) make_targets(p, &c.request, c.o.urls.url, c.o.urls.count, c.urls_path, c.o.urls.line);
	else make_targets(p, &c.request, argv + optind, (unsigned)(argc - optind), NULL, NULL);
	make_shares(p, c.skew);
	if (p->sources.count) sources_require(&p->sources, p->target->address.ss_family, p->target->url);
	*o = c.o;
}

void options_free(struct options *o) {
	for (unsigned i = 0; i < o->plan.targets; i++) target_free(&o->plan.target[i]);
	free(o->plan.target);
	free(o->plan.share);
	free((char *)o->plan.expected.at);
	free(o->plan.content.at);
	for (unsigned i = 0; i < o->plan.heads; i++) free(o->plan.fields[i].at);
	free(o->plan.fields);
	free(o->urls.url);
	free(o->urls.line);
	free(o->urls.text);
}
