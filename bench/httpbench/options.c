/* options.c - see options.h. */
#include "bench/httpbench/options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <nghttp2/nghttp2.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "bench/frames.h"
#include "bench/httpbench/rank.h"
#include "bench/usage.h"
#include "io/io.h"
#include "io/version.h"

enum {
	TARGETS_MAX = 100000,
	HEADS_MAX = 1024,
	CLIENTS_MAX = 256,
	CONNECTIONS_MAX = 1000000,
	DEPTH_MAX = 1024,
	RATE_MAX = 10000000,
	ERROR_MAX = 512,
	READ_PART = 65536,
	WINDOW_MAX = INT32_MAX, /* RFC 9113, section 6.9.1 */
	WINDOW_FIRST = 65535,   /* the initial window of a connection: it cannot be made smaller */
	WINDOW_DEFAULT = 1 << 30,
	FILE_MAX = 1 << 30,              /* bytes of --urls, --heads and --expect */
	CONTENT_MAX = 256 * 1024 * 1024, /* as FRAMES_MESSAGE_MAX */
	MESSAGE_DEFAULT = 32,
	SWITCHING_PROTOCOLS = 101
};

static const char help[] = "usage: httpbench [options] URL...\n"
						   "       httpbench merge [--json FILE] LOG...\n"
						   "       httpbench compare [--fail CONDITION] LOG LOG\n"
						   "Loads a web server and measures what its clients see.\n"
						   "\n"
						   "  -c, --connections N      connections open at a time (default: 64)\n"
						   "  -t, --threads N          clients, a thread each (default: 1)\n"
						   "  -d, --duration SECONDS   how long (default: 10)\n"
						   "  -n, --requests N         how many requests\n"
						   "  -R, --rate N             open loop: N requests a second are due, whether\n"
						   "                           those before are answered or not\n"
						   "      --arrival KIND       of these: poisson (default) or constant\n"
						   "  -k, --per-connection N   requests on a connection (default: no limit)\n"
						   "  -p, --pipeline N         requests under way on a connection (default: 1)\n"
						   "      --http2              each request is a stream of HTTP/2 (with prior\n"
						   "                           knowledge, or ALPN)\n"
						   "      --window BYTES, --connection-window BYTES\n"
						   "                           its flow control (default: 1 GiB)\n"
						   "      --websocket          each request is a message over a WebSocket, and its\n"
						   "                           answer the echo\n"
						   "      --message-size N     bytes of it, without --body (default: 32)\n"
						   "      --ramp SECONDS       open the connections over that time (closed loop)\n"
						   "  -T, --timeout SECONDS    for an answer (default: 10)\n"
						   "  -H, --header LINE        a field of every request; may be repeated\n"
						   "      --heads FILE         further fields of each request: one of several heads,\n"
						   "                           which empty lines separate, at random (HTTP/1.1)\n"
						   "  -X, --method NAME        (default: GET, with --body POST)\n"
						   "      --body FILE          the content of every request, or message\n"
						   "      --unix PATH          connect to a unix socket\n"
						   "      --source NET         connect from the addresses of NET, as 127.0.1.0/24\n"
						   "      --urls FILE          URLs, one a line, instead of those as arguments\n"
						   "      --zipf S             ask for the n-th URL 1/n^S as often (default: 0)\n"
						   "      --insecure           https:// with any certificate\n"
						   "      --resume             https:// with the session of an earlier connection\n"
						   "      --seed N             of all that is random (default: 1)\n"
						   "      --rank N, --ranks N  one of several generators, from 0, that share rate\n"
						   "                           and requests; also from MPI, Slurm, Kubernetes, GNU\n"
						   "                           parallel; %r in the name of a FILE becomes the rank\n"
						   "      --start-at TIME      begin then, in seconds since the epoch\n"
						   "      --search GOAL        find the highest rate that meets GOAL, as 'p99<5ms'\n"
						   "      --sweep              rates from 10 to 110 % of what closed loop reaches\n"
						   "      --status CODE        of each answer (default: 2xx or 304)\n"
						   "      --expect FILE        each answer has these bytes\n"
						   "      --tui                watch the run on the whole terminal\n"
						   "      --json FILE          the result; -: to stdout, and the report to stderr\n"
						   "      --tsv FILE           a line a second (-: to stdout)\n"
						   "      --hlog FILE          histograms of each second (HdrHistogram; -: stdout)\n"
						   "      --profile PID        sample process PID during the run (perf.data)\n"
						   "      --version            print the version and the libraries\n"
						   "  -h, --help\n";

enum {
	LONG_ARRIVAL = 256,
	LONG_RAMP,
	LONG_UNIX,
	LONG_SOURCE,
	LONG_INSECURE,
	LONG_RESUME,
	LONG_SEED,
	LONG_URLS,
	LONG_HEADS,
	LONG_ZIPF,
	LONG_RANK,
	LONG_RANKS,
	LONG_START,
	LONG_SEARCH,
	LONG_SWEEP,
	LONG_STATUS,
	LONG_EXPECT,
	LONG_TUI,
	LONG_JSON,
	LONG_TSV,
	LONG_HLOG,
	LONG_HTTP2,
	LONG_WINDOW,
	LONG_WINDOW_ALL,
	LONG_BODY,
	LONG_WEBSOCKET,
	LONG_MESSAGE_SIZE,
	LONG_PROFILE,
	LONG_VERSION
};

static const struct option long_options[] = {
	{"connections", required_argument, NULL, 'c'},
	{"threads", required_argument, NULL, 't'},
	{"duration", required_argument, NULL, 'd'},
	{"requests", required_argument, NULL, 'n'},
	{"rate", required_argument, NULL, 'R'},
	{"arrival", required_argument, NULL, LONG_ARRIVAL},
	{"per-connection", required_argument, NULL, 'k'},
	{"pipeline", required_argument, NULL, 'p'},
	{"ramp", required_argument, NULL, LONG_RAMP},
	{"timeout", required_argument, NULL, 'T'},
	{"header", required_argument, NULL, 'H'},
	{"method", required_argument, NULL, 'X'},
	{"unix", required_argument, NULL, LONG_UNIX},
	{"source", required_argument, NULL, LONG_SOURCE},
	{"insecure", no_argument, NULL, LONG_INSECURE},
	{"resume", no_argument, NULL, LONG_RESUME},
	{"seed", required_argument, NULL, LONG_SEED},
	{"urls", required_argument, NULL, LONG_URLS},
	{"heads", required_argument, NULL, LONG_HEADS},
	{"zipf", required_argument, NULL, LONG_ZIPF},
	{"rank", required_argument, NULL, LONG_RANK},
	{"ranks", required_argument, NULL, LONG_RANKS},
	{"start-at", required_argument, NULL, LONG_START},
	{"search", required_argument, NULL, LONG_SEARCH},
	{"sweep", no_argument, NULL, LONG_SWEEP},
	{"status", required_argument, NULL, LONG_STATUS},
	{"expect", required_argument, NULL, LONG_EXPECT},
	{"tui", no_argument, NULL, LONG_TUI},
	{"json", required_argument, NULL, LONG_JSON},
	{"tsv", required_argument, NULL, LONG_TSV},
	{"hlog", required_argument, NULL, LONG_HLOG},
	{"profile", required_argument, NULL, LONG_PROFILE},
	{"http2", no_argument, NULL, LONG_HTTP2},
	{"window", required_argument, NULL, LONG_WINDOW},
	{"connection-window", required_argument, NULL, LONG_WINDOW_ALL},
	{"body", required_argument, NULL, LONG_BODY},
	{"websocket", no_argument, NULL, LONG_WEBSOCKET},
	{"message-size", required_argument, NULL, LONG_MESSAGE_SIZE},
	{"version", no_argument, NULL, LONG_VERSION},
	{"help", no_argument, NULL, 'h'},
	{0},
};

/* Reads the whole file or pipe that is the value of an option, and appends a '\0'. Refuses more than `most` bytes, as
 * devices may have no end. The caller frees the result. */
static char *read_file(const char *option, const char *path, size_t most, size_t *length) {
	char *bytes = NULL, part[READ_PART];
	size_t n, sum = 0;
	FILE *in = fopen(path, "r"), *all = open_memstream(&bytes, length);
	if (!in) usage_refuse("%s: cannot read '%s': %s", option, path, strerror(errno));
	if (!all) usage_refuse("%s: no memory for %s", option, path);
	while ((n = fread(part, 1, sizeof part, in)) > 0) {
		if ((sum += n) > most) usage_refuse("%s: %s has more than %zu bytes", option, path, most);
		(void)fwrite(part, 1, n, all);
	}
	if (ferror(in)) usage_refuse("%s: cannot read %s: %s", option, path, strerror(errno));
	fclose(in);
	if (fclose(all) != 0) usage_refuse("%s: no memory for %s", option, path);
	return bytes;
}

/* Reads URLs from a file, one a line. Empty lines, and lines that begin with #, are skipped. */
static void read_urls(struct options *o, const char *path) {
	size_t length;
	char *line = o->urls_text = read_file("--urls", path, FILE_MAX, &length), *end = line + length;
	unsigned number = 1;
	o->url = calloc(TARGETS_MAX, sizeof *o->url);
	o->url_line = calloc(TARGETS_MAX, sizeof *o->url_line);
	if (!o->url || !o->url_line) usage_refuse("no memory for the URLs of %s", path);
	*end = '\0';
	for (char *next; line < end; line = next) {
		const unsigned here = number;
		next = line + strcspn(line, "\r\n");
		number += *next == '\n';
		if (next < end) *next++ = '\0';
		if (!*line || *line == '#') continue;
		if (o->urls == TARGETS_MAX) usage_refuse("--urls: %s has more than %d URLs", path, TARGETS_MAX);
		o->url_line[o->urls] = here;
		o->url[o->urls++] = line;
	}
	if (!o->urls) usage_refuse("--urls: %s has no URL", path);
}

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
	if (count > TARGETS_MAX) usage_refuse("more than %d URLs", TARGETS_MAX);
	p->target = calloc(count, sizeof *p->target);
	p->share = calloc(count, sizeof *p->share);
	if (!p->target || !p->share) usage_refuse("no memory for %u URLs", count);
	for (; p->targets < count; p->targets++) {
		struct target *t = &p->target[p->targets];
		int result = target_make(t, url[p->targets], o, p->target, error, sizeof error);
		if (result == 0 &&
			(memcmp(&t->address, &p->target->address, sizeof t->address) != 0 || !same(t->host, p->target->host)))
			result = snprintf(error, sizeof error, "%s is not on the server of %s", t->url, p->target->url);
		if (result != 0) refuse_url(path, path ? &line[p->targets] : NULL, error);
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
	if (o->plan.rate > 0 || o->plan.requests)
		usage_refuse("--search and --sweep choose the rate: without --rate and --requests");
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

/* Returns whether a line begins with a name and a colon. To HTTP/2 a line like ":path: /" would be one without a name,
 * and the server's complaint would look like a fault of the server. */
static bool is_header(const char *line) {
	const size_t length = strcspn(line, ": \t");
	return length && line[length] == ':';
}

/* Returns whether a line is a field with that name. */
static bool is_field(const char *line, const char *name) {
	const size_t length = strlen(name);
	return strncasecmp(line, name, length) == 0 && line[length] == ':';
}

/* Refuses "Connection: close", since the server would close connections on which other requests are under way. */
static void check_header(const char *option, const char *line) {
	if (is_field(line, "Connection") && strcasestr(line, "close"))
		usage_refuse("%s '%s': use -k 1 instead", option, line);
}

/* Reads the fields of several heads from a file; empty lines separate the heads. */
static void read_heads(struct plan *p, const char *path) {
	size_t length;
	char *text = read_file("--heads", path, FILE_MAX, &length), *rest = text;
	FILE *out = NULL;
	p->fields = calloc(HEADS_MAX, sizeof *p->fields);
	if (strlen(text) != length) usage_refuse("--heads: %s is no text", path);
	for (unsigned number = 1; rest; number++) {
		char *line = strsep(&rest, "\n");
		line[strcspn(line, "\r")] = '\0';
		if (*line) {
			if (!is_header(line)) usage_refuse("%s, line %u: '%s' is not 'Name: value'", path, number, line);
			check_header("--heads", line);
			if (!out && p->heads == HEADS_MAX) usage_refuse("--heads: %s has more than %d heads", path, HEADS_MAX);
			if (!out && p->fields) {
				struct target_bytes *head = &p->fields[p->heads++];
				out = open_memstream(&head->at, &head->length);
			}
			if (!out || fprintf(out, "%s\r\n", line) < 0) usage_refuse("no memory for the heads of %s", path);
		}
		if (out && (!*line || !rest)) {
			fputs("\r\n", out);
			if (fclose(out) != 0) usage_refuse("no memory for the heads of %s", path);
			out = NULL;
		}
	}
	free(text);
	if (!p->heads) usage_refuse("--heads: %s has no fields", path);
}

/* Refuses options that do not go with a WebSocket. */
static void check_websocket(const struct plan *p, const struct target_options *o) {
	static const char *const own[] = {"Connection", "Upgrade", "Sec-WebSocket-Key", "Sec-WebSocket-Version",
									  "Sec-WebSocket-Extensions"};
	if (p->http2) usage_refuse("--websocket is over HTTP/1.1: without --http2");
	if (o->method) usage_refuse("--websocket begins with GET: without --method");
	if (p->expected.at || p->expected.status)
		usage_refuse("--websocket expects the echo: without --expect and --status");
	for (unsigned i = 0; i < o->headers; i++)
		for (unsigned j = 0; j < sizeof own / sizeof *own; j++)
			if (is_field(o->header[i], own[j])) usage_refuse("--websocket has a field %s of its own", own[j]);
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

void options_parse(struct options *o, int argc, char **argv) {
	struct target_options request = {0};
	struct plan *p = &o->plan;
	const char *urls_path = NULL;
	double duration_s = 0, skew = 0;
	int64_t message_size = -1;
	*o = (struct options){0};
	*p = (struct plan){.clients = 1, .connections = 64, .depth = 1, .seed = 1, .ranks = 1, .timeout_ns = 10000000000};
	p->window = p->window_all = WINDOW_DEFAULT;
	rank_from_environment(&p->rank, &p->ranks);
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, ":c:t:d:n:R:k:p:T:H:X:h", long_options, NULL)) != -1;) {
		switch (c) {
		case 'c': p->connections = (unsigned)usage_whole_number("--connections", optarg, 1, CONNECTIONS_MAX); break;
		case 't': p->clients = (unsigned)usage_whole_number("--threads", optarg, 1, CLIENTS_MAX); break;
		case 'd': duration_s = usage_seconds("--duration", optarg, 0.001, 1e6); break;
		case 'n': p->requests = usage_whole_number("--requests", optarg, 1, 1e15); break;
		case 'R': p->rate = usage_number("--rate", optarg, 0.001, RATE_MAX); break;
		case LONG_ARRIVAL:
			if (strcmp(optarg, "poisson") != 0 && strcmp(optarg, "constant") != 0)
				usage_refuse("--arrival is poisson or constant, not '%s'", optarg);
			p->arrival = *optarg == 'p' ? ARRIVAL_POISSON : ARRIVAL_CONSTANT;
			break;
		case 'k': p->per_connection = (unsigned)usage_whole_number("--per-connection", optarg, 1, 1e9); break;
		case 'p': p->depth = (unsigned)usage_whole_number("--pipeline", optarg, 1, DEPTH_MAX); break;
		case LONG_RAMP: p->ramp_ns = (int64_t)(usage_seconds("--ramp", optarg, 0, 1e6) * 1e9); break;
		case 'T': p->timeout_ns = (int64_t)(usage_seconds("--timeout", optarg, 0.1, 3600) * 1e9); break;
		case 'H':
			if (request.headers == TARGET_HEADERS_MAX) usage_refuse("more than %d header fields", TARGET_HEADERS_MAX);
			if (!is_header(optarg)) usage_refuse("--header takes 'Name: value', not '%s'", optarg);
			if (strpbrk(optarg, "\r\n")) usage_refuse("--header takes one line");
			request.header[request.headers++] = optarg;
			break;
		case 'X':
			if (!*optarg || strpbrk(optarg, " \t\r\n")) usage_refuse("--method takes a word, not '%s'", optarg);
			request.method = optarg;
			break;
		case LONG_UNIX:
			if (!*optarg) usage_refuse("--unix takes the path of a socket, not ''");
			request.unix_path = optarg;
			break;
		case LONG_SOURCE:
			if (sources_parse(&p->sources, optarg) == -1)
				usage_refuse("--source takes an address or a network like 127.0.1.0/24, not '%s'", optarg);
			break;
		case LONG_INSECURE: p->tls.insecure = true; break;
		case LONG_RESUME: p->tls.resume = true; break;
		case LONG_SEED: p->seed = usage_whole_number("--seed", optarg, 0, 1e15); break;
		case LONG_URLS: urls_path = optarg; break;
		case LONG_HEADS: read_heads(p, optarg); break;
		case LONG_ZIPF: skew = usage_number("--zipf", optarg, 0, 10); break;
		case LONG_RANK: p->rank = (unsigned)usage_whole_number("--rank", optarg, 0, RANK_MAX - 1); break;
		case LONG_RANKS: p->ranks = (unsigned)usage_whole_number("--ranks", optarg, 1, RANK_MAX); break;
		case LONG_START: o->start_s = usage_number("--start-at", optarg, 0, 1e12); break;
		case LONG_SEARCH:
			if (goal_parse(&o->goal, optarg) == -1)
				usage_refuse("--search takes a goal like 'p99<5ms', not '%s'", optarg);
			o->search = true;
			break;
		case LONG_SWEEP: o->sweep = true; break;
		case LONG_STATUS: p->expected.status = (unsigned)usage_whole_number("--status", optarg, 200, 599); break;
		case LONG_EXPECT: p->expected.at = read_file("--expect", optarg, FILE_MAX, &p->expected.length); break;
		case LONG_TUI: o->tui = true; break;
		case LONG_JSON: o->json_path = optarg; break;
		case LONG_TSV: o->tsv_path = optarg; break;
		case LONG_HLOG: o->hlog_path = optarg; break;
		case LONG_PROFILE: o->profile = (pid_t)usage_whole_number("--profile", optarg, 1, INT32_MAX); break;
		case LONG_HTTP2: p->http2 = p->tls.http2 = request.http2 = true; break;
		case LONG_WINDOW: p->window = (unsigned)usage_whole_number("--window", optarg, 1, WINDOW_MAX); break;
		case LONG_WINDOW_ALL:
			p->window_all = (unsigned)usage_whole_number("--connection-window", optarg, WINDOW_FIRST, WINDOW_MAX);
			break;
		case LONG_WEBSOCKET: p->websocket = request.websocket = true; break;
		case LONG_MESSAGE_SIZE:
			message_size = (int64_t)usage_whole_number("--message-size", optarg, 0, CONTENT_MAX);
			break;
		case LONG_BODY:
			p->content.at = read_file("--body", optarg, CONTENT_MAX, &p->content.length);
			if (!p->content.length) usage_refuse("%s is empty: leave --body out", optarg);
			break;
		case LONG_VERSION:
			printf("httpbench %s (%s; %s, nghttp2 %s)\n", GATLING_VERSION, io_mechanism(),
				   OpenSSL_version(OPENSSL_VERSION), nghttp2_version(0)->version_str);
			exit(usage_end(0));
		case 'h': usage_help(help);
		default: usage_bad_option(c, argv);
		}
	}
	if (message_size != -1 && !p->websocket) usage_refuse("--message-size is of --websocket");
	if (message_size != -1 && p->content.at) usage_refuse("--message-size and --body exclude each other");
	if (p->websocket) check_websocket(p, &request);
	else request.content_length = p->content.length;
	for (unsigned i = 0; !p->http2 && i < request.headers; i++) check_header("--header", request.header[i]);
	if (p->heads && (p->http2 || p->websocket)) usage_refuse("--heads is of plain HTTP/1.1");
	request.open = p->heads;
	if (!request.method) request.method = request.content_length ? "POST" : "GET";
	if (p->websocket) make_message(p, message_size == -1 ? MESSAGE_DEFAULT : (size_t)message_size);
	if (!p->http2 && (p->window != WINDOW_DEFAULT || p->window_all != WINDOW_DEFAULT))
		usage_refuse("--window and --connection-window are of HTTP/2: add --http2");
	if (o->search || o->sweep) check_series(o);
	check_outputs(o);
	if (o->tui && !isatty(STDOUT_FILENO)) usage_refuse("--tui needs a terminal on stdout");
	if (urls_path && optind < argc) usage_refuse("the URLs come from %s: not '%s', too", urls_path, argv[optind]);
	if (optind == argc && !urls_path) usage_refuse("the URL is missing");
	if (p->clients > p->connections)
		usage_refuse("--threads %u: there are more threads than --connections %u", p->clients, p->connections);
	if (p->rank >= p->ranks && p->ranks > 1) usage_refuse("rank %u of %u: the first is 0", p->rank, p->ranks);
	if (p->sources.count && p->ranks > 1) sources_share(&p->sources, p->rank, p->ranks);
	p->rate /= p->ranks;
	if (p->requests && p->requests < p->ranks) usage_refuse("--requests has to be at least --ranks");
	if (p->requests) p->requests = (p->requests + p->ranks - 1 - p->rank % p->ranks) / p->ranks;
	p->duration_ns = duration_s > 0 ? (int64_t)(duration_s * 1e9) : p->requests ? 0 : 10000000000;
	if (urls_path) read_urls(o, urls_path);
	if (urls_path) make_targets(p, &request, o->url, o->urls, urls_path, o->url_line);
	else make_targets(p, &request, argv + optind, (unsigned)(argc - optind), NULL, NULL);
	make_shares(p, skew);
	if (p->sources.count) sources_require(&p->sources, p->target->address.ss_family, p->target->url);
}

void options_free(struct options *o) {
	for (unsigned i = 0; i < o->plan.targets; i++) target_free(&o->plan.target[i]);
	free(o->plan.target);
	free(o->plan.share);
	free((char *)o->plan.expected.at);
	free(o->plan.content.at);
	for (unsigned i = 0; i < o->plan.heads; i++) free(o->plan.fields[i].at);
	free(o->plan.fields);
	free(o->url);
	free(o->url_line);
	free(o->urls_text);
}
