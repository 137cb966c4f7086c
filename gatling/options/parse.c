/* parse.c - see parse.h. Here are the table of options, what --limit, --help and --version do, and the defaults that
 * depend on other options. */
#include "gatling/options/parse.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "gatling/acme/store.h"
#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/budget.h"
#include "gatling/load/min_rate.h"
#include "gatling/options/help.h"
#include "gatling/options/nearest.h"
#include "gatling/options/take.h"
#include "gatling/options/values.h"
#include "gatling/quic/libraries.h"
#include "io/io.h"
#include "io/version.h"

/* libowfat does not tell its version; the build asks the package manager. */
#ifndef LIBOWFAT_VERSION
#define LIBOWFAT_VERSION "(version unknown)"
#endif

enum { PORT_MAX = 65535, PORT_ROOT = 80, PORT_USER = 8000, TLS_PORT_ROOT = 443, TLS_PORT_USER = 8443 };
enum { TIMEOUT_S = 23, HEAD_TIMEOUT_S = 10, DRAIN_DELAY_S = 5, NOT_GIVEN = -1 };
enum { CLIENT_MEMORY_MIN = 2 * BUDGET_CONNECTION, MEMORY_MIN = 16 * 1024 * 1024 };
enum { /* bytes */
	   CACHE_MIN = 1024 * 1024,
	   CACHE_WORKER = 64 * 1024 * 1024, /* default for each worker */
	   CACHE_MOST = 1024 * 1024 * 1024, /* limit of the default for all */
	   GZIP_CACHE = 64 * 1024 * 1024
};
enum { CONNECTIONS_MAX = 100000000, CACHE_FILES_MAX = 100000000, MIN_RATE_MAX = 1000000 };
enum { HSTS_MAX_S = 10 * 365 * 24 * 60 * 60 };

static option_parse take_limit, take_version;

/* In the order of --help. The limits come last. */
static const struct option_row table[] = {
	{"root", 'c', GENERAL, "DIR", "serve DIR; as root, chroot to it", TEXT(root)},
	{"port", 'p', GENERAL, "PORT", "default: 80 as root, else 8000; 0: any free port", NUMBER(port, 0, PORT_MAX)},
	{"listen", 'i', GENERAL, "ADDR", "IP, name or unix:PATH; repeatable (default: all)", OWN(take_listen)},
	{"user", 'u', GENERAL, "USER", "become USER (or UID[:GID]) after binding", TEXT(user)},
	{"workers", 'j', GENERAL, "N", "threads (default: one for each usable core)", NUMBER(workers, 1, WORKERS_MAX)},
	{"limit", 0, GENERAL, "NAME=VALUE", "time, memory, rate or count: see --help limits", OWN(take_limit)},
	{"listings", 'd', GENERAL, NULL, "list directories without index.html (default)", EITHER(listings, LISTINGS_ON)},
	{"no-listings", 'D', GENERAL, NULL, "do not list directories (default with -v)", EITHER(listings, LISTINGS_OFF)},
	{"fallback", 'r', GENERAL, "URL", "redirect requests for missing files to URL (302)", OWN(take_fallback)},
	{"no-cache-control", 0, GENERAL, NULL, "send only the Cache-Control fields from _headers",
	 FLAG(site.cache_control, false)},
	{"mime", 0, GENERAL, "FILE", "media types that precede the built-in ones", TEXT(mime)},
	{"dictionaries", 0, GENERAL, "DIRS", "older releases: browsers get what has changed", TEXT(dictionaries)},
	{"vhosts", 'v', GENERAL, NULL, "serve only the directories of hosts, and default/",
	 EITHER(site.vhosts, VHOSTS_ONLY)},
	{"no-vhosts", 'V', GENERAL, NULL, "serve DIR itself, whatever the host", EITHER(site.vhosts, VHOSTS_OFF)},
	{"symlinks", 0, GENERAL, "inside", "do not follow symlinks that lead out of DIR",
	 SWITCH(site.symlinks_inside, "follow|inside")},
	{"upstream", 0, GENERAL, "ADDR", "where _redirects may pass requests to; repeatable", OWN(take_upstream)},
	{"upstream-ca", 0, GENERAL, "FILE", "whom https upstreams have their certificates from", TEXT(upstream_ca)},
	{"upstream-headers", 0, GENERAL, NULL, "add the fields of _headers to their answers",
	 FLAG(site.upstream_headers, true)},
	{"upstream-gzip", 0, GENERAL, NULL, "compress what upstreams answer", FLAG(upstream_gzip, true)},
	{"proxy-protocol", 0, GENERAL, "NET", "expect a PROXY header from NET; repeatable", OWN(take_proxy_protocol)},
	{"trust", 0, GENERAL, "NET", "believe X-Forwarded-For from NET; repeatable", OWN(take_trust)},
	{"health", 0, GENERAL, "PATH", "answer PATH with 200, from SIGTERM on with 503", OWN(take_health)},
	{"take-over", 0, GENERAL, "PATH", "take the place of the gatling with the same PATH", TEXT(take_over)},
	{"status", 0, GENERAL, "ADDR", "show a status page at unix:PATH, PORT or ADDR:PORT", TEXT(status)},
	{"defer-accept", 0, GENERAL, "off", "accept connections before their request has come",
	 SWITCH(defer_accept, "off|on")},
	{"sandbox", 0, GENERAL, "off", "do not limit files and system calls, for debuggers", SWITCH(sandbox, "off|on")},
	{"cert", 0, HTTPS, "FILE", "a certificate, perhaps with its key; repeatable", OWN(take_cert)},
	{"key", 0, HTTPS, "FILE", "the key of the preceding --cert; repeatable", OWN(take_key)},
	{"cert-dir", 0, HTTPS, "CERTS", "CERTS/NAME/fullchain.pem with privkey.pem (certbot)", TEXT(tls.cert_dir)},
	{"acme", 0, HTTPS, "[=EMAIL]", "get them from Let's Encrypt: see --help acme", OWN(take_acme)},
	{"acme-name", 0, ACME, "NAME", "get one for NAME, too; repeatable", OWN(take_acme_name)},
	{"acme-directory", 0, ACME, "URL", "get them from the authority at URL", OWN(take_acme_directory)},
	{"acme-profile", 0, ACME, "NAME", "of that profile, such as shortlived", OWN(take_acme_profile)},
	{"acme-eab", 0, ACME, "FILE", "KEYID:KEY of an account there", TEXT(acme.eab)},
	{"acme-dir", 0, ACME, "DIR", "where their keys and certificates are kept", TEXT(acme.directory)},
	{"tls-port", 0, HTTPS, "PORT", "default: 443 as root, else 8443; 0: any free port", NUMBER(tls_port, 0, PORT_MAX)},
	{"https", 'e', HTTPS, NULL, "exit if HTTPS cannot start; wait for a certificate", EITHER(tls.https, HTTPS_ON)},
	{"no-https", 'E', HTTPS, NULL, "no HTTPS", EITHER(tls.https, HTTPS_OFF)},
	{"strict-sni", 0, HTTPS, NULL, "refuse server names that no certificate covers", FLAG(strict_sni, true)},
	{"client-ca", 0, HTTPS, "FILE", "require client certificates of authorities in FILE", TEXT(tls.client_ca)},
	{"https-redirect", 0, HTTPS, NULL, "redirect requests on the plain port to HTTPS", FLAG(https_redirect, true)},
	{"hsts", 0, HTTPS, "SECONDS", "tell browsers to use only HTTPS for this time", SECONDS(hsts_s, HSTS_MAX_S)},
	{"log", 0, LOGGING, "FORMAT", "common (the default), [v]combined, json, or off",
	 WORD(log, LOG_COMMON, "common|combined|vcombined|json|off")},
	{"log-dir", 0, LOGGING, "DIR", "one for each site instead: DIR/SITE.log", TEXT(log_dir)},
	{"log-file", 0, LOGGING, "FILE", "append the log to FILE (default: stdout)", TEXT(log_file)},
	{"no-log", 'n', LOGGING, NULL, "the same as --log off", EITHER(log, LOG_OFF)},
	{"error-log", 0, LOGGING, "FILE", "append what goes wrong to FILE (default: stderr)", TEXT(error_log)},
	{"error-level", 0, LOGGING, "LEVEL", "error, warning, notice or info (the default)",
	 WORD(error_level, LEVEL_ERROR, "error|warning|notice|info")},
	{"top", 0, INSTEAD, "ADDR", "show the status page at ADDR on the terminal", TEXT(top)},
	{"check", 0, INSTEAD, NULL, "list the hosts, and all mistakes in their files", FLAG(check, true)},
	{"explain", 0, INSTEAD, "URL", "show how a request for URL is answered, and why", TEXT(explain)},
	{"certificates", 0, INSTEAD, NULL, "show names, dates and last results in --acme-dir", FLAG(certificates, true)},
	{"help", 'h', INSTEAD, NULL, "print this text, or about 'acme' or 'limits'", OWN(NULL)},
	{"version", 0, INSTEAD, NULL, "print the version, event mechanism and libraries", OWN(take_version)},
	{"timeout", 'T', LIMITS, "SECONDS", "for content, and for clients that stop reading",
	 SECONDS(conn.timeout_s, TIMEOUT_MAX_S), .initial = "23; 0: none"},
	{"head-timeout", 0, LIMITS, "SECONDS", "for the head of a request, and for a handshake",
	 SECONDS(conn.head_timeout_s, TIMEOUT_MAX_S), .initial = "10, or the timeout if shorter; 0: none"},
	{"keepalive-timeout", 0, LIMITS, "SECONDS", "for a connection between two requests",
	 SECONDS(conn.keepalive_timeout_s, TIMEOUT_MAX_S), .initial = "that of timeout; 0: none"},
	{"drain-delay", 0, LIMITS, "SECONDS", "go on accepting after SIGTERM", SECONDS(drain_delay_s, TIMEOUT_MAX_S),
	 .initial = "5, or until there is no connection"},
	{"client-memory", 0, LIMITS, "SIZE", "memory that each worker keeps for its clients",
	 SIZE(conn.client_memory, CLIENT_MEMORY_MIN), .initial = "64M"},
	{"memory", 0, LIMITS, "SIZE", "memory of all connections, with that of OpenSSL", SIZE(conn.memory, MEMORY_MIN),
	 .initial = "1/4 of the machine's or control group's"},
	{"connections", 0, LIMITS, "N", "connections of all workers together", NUMBER(connections, 1, CONNECTIONS_MAX),
	 .initial = "as many as descriptors allow"},
	{"min-rate", 0, LIMITS, "BYTES", "a second; close slower clients when room is short",
	 NUMBER(conn.min_rate, 0, MIN_RATE_MAX), .initial = "500; 0: none"},
	{"rate", 0, LIMITS, "N[:BURST]", "requests a second; further ones get 503", RATE(limits.rate), .initial = "none"},
	{"address-rate", 0, LIMITS, "N[:BURST]", "requests a second of an address; then 429", RATE(limits.address_rate),
	 .initial = "none"},
	{"address-requests", 0, LIMITS, "N", "requests under way of an address; then 429",
	 NUMBER(limits.address_requests, 0, LIMITS_COUNT_MAX), .initial = "none"},
	{"address-connections", 0, LIMITS, "N", "connections of an address; then 429",
	 NUMBER(limits.address_connections, 0, LIMITS_COUNT_MAX), .initial = "none"},
	{"body", 0, LIMITS, "SIZE", "content of a request for an upstream; more: 413",
	 SIZE(site.upstream_limits.body_max, 0), .initial = "none"},
	{"upstream-connect", 0, LIMITS, "SECONDS", "for a connection to an upstream, with TLS",
	 NUMBER(site.upstream_limits.connect_s, 1, TIMEOUT_MAX_S), .initial = "5"},
	{"upstream-first", 0, LIMITS, "SECONDS", "for the first byte of its answer",
	 NUMBER(site.upstream_limits.first_s, 1, TIMEOUT_MAX_S), .initial = "60"},
	{"upstream-between", 0, LIMITS, "SECONDS", "between two bytes of it",
	 NUMBER(site.upstream_limits.between_s, 1, TIMEOUT_MAX_S), .initial = "60"},
	{"upstream-tunnel", 0, LIMITS, "SECONDS", "between two bytes of a WebSocket",
	 NUMBER(site.upstream_limits.tunnel_s, 1, TIMEOUT_MAX_S), .initial = "3600"},
	{"cache", 0, LIMITS, "SIZE", "memory for files, in all workers together", SIZE(site.cache, CACHE_MIN),
	 .initial = "64M a worker, up to 1G and 1/4 of memory"},
	{"cache-files", 0, LIMITS, "N", "larger files kept open, in all workers together",
	 NUMBER(site.cache_files, 1, CACHE_FILES_MAX), .initial = "1/8 of descriptors, up to 1024 a worker"},
	{"gzip-cache", 0, LIMITS, "SIZE", "memory for files that gatling compresses", SIZE(site.gzip_cache, 0),
	 .initial = "64M; 0: compress nothing"},
	{0},
};

enum {
	ROWS = sizeof table / sizeof table[0] - 1,
	LONG = 256 /* what getopt_long() returns for a long option: this and the index of its row */
};

static const struct option_row *first_limit(void) {
	const struct option_row *row = table;
	while (row->section != LIMITS) row++;
	return row;
}

/* Exits after printing to stdout. */
__attribute__((noreturn)) static void done(void) {
	if (fflush(stdout) == 0 && !ferror(stdout)) exit(0);
	(void)notice_cannot("write to stdout", NULL, strerror(errno));
	exit(1);
}

static void take_version(struct options *o, const struct option_row *row, char *text) {
	char http3[QUIC_LIBRARIES_MAX];
	(void)o, (void)row, (void)text;
	quic_libraries(http3);
	printf("gatling %s (%s; libowfat %s, %s, zlib %s)\n%s\n", GATLING_VERSION, io_mechanism(), LIBOWFAT_VERSION,
		   OpenSSL_version(OPENSSL_VERSION), zlibVersion(), http3);
	done();
}

static void take_limit(struct options *o, const struct option_row *row, char *text) {
	const size_t length = strcspn(text, "=");
	const struct option_row *limit = first_limit(), *meant;
	if (!text[length]) option_takes(row, text, "NAME=VALUE, such as head-timeout=30");
	while (limit->name && (strncmp(limit->name, text, length) != 0 || limit->name[length])) limit++;
	if (limit->name) {
		limit->parse(o, limit, text + length + 1);
		return;
	}
	meant = nearest_row(first_limit(), text);
	if (meant) option_refuse("unknown limit '%s': did you mean --limit %s=%s?", text, meant->name, meant->argument);
	char names[NOTICE_TEXT_MAX] = "";
	for (limit = first_limit(); limit->name; limit++) {
		const size_t used = strlen(names);
		snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", limit->name);
	}
	option_refuse("unknown limit '%s': there are %s", text, names);
}

/* Refuses what getopt_long() does not accept. */
__attribute__((noreturn)) static void refuse(const char *argument, bool known) {
	if (known) option_refuse("option '%s' takes no value", argument);
	if (optopt) option_refuse("unknown option '-%c'", optopt);
	const struct option_row *meant = nearest_row(table, argument + strspn(argument, "-"));
	if (!meant) option_refuse("unknown option '%s'", argument);
	if (meant->section == LIMITS)
		option_refuse("unknown option '%s': did you mean --limit %s=%s?", argument, meant->name, meant->argument);
	option_refuse("unknown option '%s': did you mean --%s?", argument, meant->name);
}

static const struct option_row *row_of(int c) {
	if (c >= LONG) return &table[c - LONG];
	const struct option_row *row = table;
	while (row->letter != c) row++;
	return row;
}

/* Checks the options about ACME, and fills in their defaults. */
static void settle_acme(struct options *o) {
	static char directory[PATH_MAX], live[PATH_MAX];
	struct acme_options *a = &o->acme;
	if (!a->on && (a->names || a->eab || a->profile))
		option_refuse("--acme-name, --acme-profile and --acme-eab go with --acme");
	if (!a->on && !o->certificates) return;
	if (!a->directory && store_default(directory)) a->directory = directory;
	if (!a->directory) option_refuse("--acme-dir says where keys and certificates are kept");
	if (*a->directory != '/' && realpath(a->directory, directory)) a->directory = directory;
	store_path(live, a->directory, "live");
	a->sites = o->site.vhosts != VHOSTS_OFF;
	a->beneath = o->site.symlinks_inside;
	if (a->on) o->tls.acme_dir = live;
	o->strict_sni |= a->on; /* no certificate is better than that of another name */
}

static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* memory: for connections; also the most for each cache. */
static void set_defaults(struct options *o, uint64_t memory) {
	*o =
		(struct options){.site.cache_control = true,
						 .site.starter = getuid(),
						 .site.older = -1,
						 .site.gzip_cache = least(GZIP_CACHE, memory),
						 .port = geteuid() == 0 ? PORT_ROOT : PORT_USER,
						 .tls_port = geteuid() == 0 ? TLS_PORT_ROOT : TLS_PORT_USER,
						 .workers = (int)io_processors(),
						 .conn.timeout_s = TIMEOUT_S,
						 .conn.head_timeout_s = NOT_GIVEN,
						 .conn.keepalive_timeout_s = NOT_GIVEN,
						 .conn.client_memory = BUDGET_WORKER,
						 .conn.memory = memory,
						 .conn.min_rate = MIN_RATE,
						 .acme.url = ACME_URL,
						 .site.upstream_limits =
							 {.connect_s = 5, .first_s = 60, .between_s = 60, .tunnel_s = 3600, .body_max = UINT64_MAX},
						 .defer_accept = true,
						 .drain_delay_s = NOT_GIVEN,
						 .error_level = LEVEL_INFO,
						 .sandbox = true};
	if (o->workers > WORKERS_MAX) o->workers = WORKERS_MAX;
}

static void settle_https(struct options *o) {
	const bool wanted = o->tls.certs || o->acme.on || o->tls.cert_dir || o->tls.client_ca || o->strict_sni ||
						o->https_redirect || o->hsts_s;
	if (wanted && o->tls.https == HTTPS_OFF) option_refuse("--no-https excludes the other options about HTTPS");
	if (wanted) o->tls.https = HTTPS_ON;
}

/* Checks what depends on several options, and fills in their defaults. */
static void settle(struct options *o, uint64_t memory) {
	struct conn_options *c = &o->conn;
	if (!o->root) o->root = ".";
	if (c->keepalive_timeout_s == NOT_GIVEN) c->keepalive_timeout_s = c->timeout_s;
	if (c->head_timeout_s == NOT_GIVEN)
		c->head_timeout_s = c->timeout_s && c->timeout_s < HEAD_TIMEOUT_S ? c->timeout_s : HEAD_TIMEOUT_S;
	o->drain_whole = o->drain_delay_s != NOT_GIVEN || o->site.health;
	if (o->drain_delay_s == NOT_GIVEN) o->drain_delay_s = DRAIN_DELAY_S;
	settle_acme(o);
	settle_https(o);
	if (o->log_dir) o->log_file = NULL;
	if (o->log == LOG_OFF) o->log_file = o->log_dir = NULL;
	if (o->connections && o->connections < o->workers)
		option_refuse("--limit connections takes at least one for each worker (-j %d), not %d", o->workers,
					  o->connections);
	if (!o->site.cache) o->site.cache = least(least((uint64_t)o->workers * CACHE_WORKER, CACHE_MOST), memory);
	if (o->listings == LISTINGS_DEFAULT) o->listings = o->site.vhosts == VHOSTS_ONLY ? LISTINGS_OFF : LISTINGS_ON;
	o->site.listings = o->listings == LISTINGS_ON;
}

/* Fills in what getopt_long() takes. */
static void make_getopt(char letters[2 * ROWS + 2], struct option names[ROWS + 1]) {
	*letters++ = ':';
	for (int i = 0; i < ROWS; i++) {
		const struct option_row *row = &table[i];
		if (row->letter) *letters++ = row->letter;
		if (row->letter && row->argument) *letters++ = ':';
		if (row->section == LIMITS) continue;
		const int takes = !row->argument ? no_argument : *row->argument == '[' ? optional_argument : required_argument;
		*names++ = (struct option){row->name, takes, NULL, LONG + i};
	}
}

void options_parse(struct options *o, int argc, char **argv) {
	const uint64_t memory = platform_memory() / BUDGET_MACHINE;
	char letters[2 * ROWS + 2] = "";
	struct option names[ROWS + 1] = {0};
	set_defaults(o, memory);
	make_getopt(letters, names);
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, letters, names, NULL)) != -1;) {
		/* after a short option musl has passed the value that is missing */
		if (c == ':') option_refuse("option '%s' needs a value", argv[(optind > argc ? argc : optind) - 1]);
		if (c == '?') refuse(argv[optind - 1], optopt >= LONG);
		const struct option_row *row = row_of(c);
		if (row->parse) {
			row->parse(o, row, optarg);
			continue;
		}
		help_print(table, optind < argc ? argv[optind] : NULL);
		done();
	}
	if (o->acme.on && !o->acme.email && optind < argc && strchr(argv[optind], '@'))
		option_refuse("the address of --acme follows a '=': --acme=%s", argv[optind]);
	if (optind + 1 < argc || (optind < argc && o->root))
		option_refuse("unexpected argument '%s': one directory is served", argv[argc - 1]);
	if (optind < argc) o->root = argv[optind];
	settle(o, memory);
}
