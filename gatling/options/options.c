/* options.c - see options.h. */
#include "gatling/options/options.h"

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
#include "gatling/acme/subjects.h"
#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/conn/budget.h"
#include "gatling/conn/min_rate.h"
#include "gatling/http/path.h"
#include "gatling/options/help.h"
#include "gatling/options/nearest.h"
#include "gatling/options/values.h"
#include "io/io.h"
#include "io/version.h"

/* libowfat does not tell its version; the build asks the package manager. */
#ifndef LIBOWFAT_VERSION
#define LIBOWFAT_VERSION "(version unknown)"
#endif

enum { PORT_ROOT = 80, PORT_USER = 8000, TLS_PORT_ROOT = 443, TLS_PORT_USER = 8443 };
enum { TIMEOUT_S = 23, HEAD_TIMEOUT_S = 10, DRAIN_DELAY_S = 5 };
enum { CLIENT_MEMORY_MIN = 2 * BUDGET_CONNECTION, MEMORY_MIN = 16 * 1024 * 1024 };
enum { /* bytes */
	   CACHE_MIN = 1024 * 1024,
	   CACHE_WORKER = 64 * 1024 * 1024, /* default for each worker */
	   CACHE_MOST = 1024 * 1024 * 1024, /* limit of the default for all */
	   GZIP_CACHE = 64 * 1024 * 1024
};
enum { CONNECTIONS_MAX = 100000000, CACHE_FILES_MAX = 100000000, MIN_RATE_MAX = 1000000 };
enum { HSTS_MAX_S = 10 * 365 * 24 * 60 * 60 };

/* Checks a URL with which a Location may begin, and returns it. */
static const char *url(const char *text) {
	size_t scheme = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-.");
	if (!scheme || strncmp(text + scheme, "://", 3) != 0 || !text[scheme + 3])
		option_refuse("--fallback takes a URL, such as https://mirror.example.org, not '%s'", text);
	if (strlen(text) > FALLBACK_MAX) option_refuse("--fallback takes a URL of at most %d bytes", FALLBACK_MAX);
	for (const char *at = text; *at; at++)
		if (*at <= ' ' || *at >= 127) option_refuse("--fallback takes a URL of visible ASCII, not '%s'", text);
	return text;
}

static enum log_format log_format(const char *text) {
	static const char *const names[] = {
		[LOG_COMMON] = "common", [LOG_COMBINED] = "combined", [LOG_JSON] = "json", [LOG_OFF] = "off"};
	for (int i = LOG_COMMON; i <= LOG_OFF; i++)
		if (strcmp(text, names[i]) == 0) return (enum log_format)i;
	option_refuse("--log takes 'common', 'combined', 'json' or 'off', not '%s'", text);
}

static enum notice_level error_level(const char *text) {
	for (int i = LEVEL_ERROR; i <= LEVEL_INFO; i++)
		if (strcmp(text, notice_level_name[i]) == 0) return (enum notice_level)i;
	option_refuse("--error-level takes 'error', 'warning', 'notice' or 'info', not '%s'", text);
}

/* Exits after printing to stdout. */
__attribute__((noreturn)) static void done(void) {
	if (fflush(stdout) == 0 && !ferror(stdout)) exit(0);
	(void)notice_cannot("write to stdout", NULL, strerror(errno));
	exit(1);
}

__attribute__((noreturn)) static void print_version(void) {
	printf("gatling %s (%s; libowfat %s, %s, zlib %s)\n", GATLING_VERSION, io_mechanism(), LIBOWFAT_VERSION,
		   OpenSSL_version(OPENSSL_VERSION), zlibVersion());
	done();
}

static const char short_options[] = ":c:p:i:u:j:T:r:dDvVeEnh";

enum {
	LONG_SYMLINKS = 256,
	LONG_CACHE,
	LONG_CACHE_FILES,
	LONG_GZIP_CACHE,
	LONG_NO_CACHE_CONTROL,
	LONG_MIME,
	LONG_DEFER,
	LONG_SANDBOX,
	LONG_VERSION,
	LONG_CERT,
	LONG_KEY,
	LONG_CERT_DIR,
	LONG_ACME,
	LONG_ACME_NAME,
	LONG_ACME_DIRECTORY,
	LONG_ACME_EAB,
	LONG_ACME_DIR,
	LONG_CERTIFICATES,
	LONG_TLS_PORT,
	LONG_STRICT_SNI,
	LONG_CLIENT_CA,
	LONG_REDIRECT,
	LONG_HSTS,
	LONG_LOG,
	LONG_LOG_FILE,
	LONG_ERROR_LOG,
	LONG_ERROR_LEVEL,
	LONG_HEAD_TIMEOUT,
	LONG_KEEPALIVE_TIMEOUT,
	LONG_CLIENT_MEMORY,
	LONG_CONNECTIONS,
	LONG_MEMORY,
	LONG_MIN_RATE,
	LONG_ADDRESS_CONNECTIONS,
	LONG_ADDRESS_REQUESTS,
	LONG_RATE,
	LONG_ADDRESS_RATE,
	LONG_TAKE_OVER,
	LONG_PROXY_PROTOCOL,
	LONG_TRUST,
	LONG_UPSTREAM,
	LONG_UPSTREAM_GZIP,
	LONG_DRAIN_DELAY,
	LONG_HEALTH,
	LONG_STATUS,
	LONG_TOP,
	LONG_CHECK
};

static const struct option long_options[] = {
	{"root", required_argument, NULL, 'c'},
	{"port", required_argument, NULL, 'p'},
	{"listen", required_argument, NULL, 'i'},
	{"user", required_argument, NULL, 'u'},
	{"workers", required_argument, NULL, 'j'},
	{"timeout", required_argument, NULL, 'T'},
	{"head-timeout", required_argument, NULL, LONG_HEAD_TIMEOUT},
	{"keepalive-timeout", required_argument, NULL, LONG_KEEPALIVE_TIMEOUT},
	{"client-memory", required_argument, NULL, LONG_CLIENT_MEMORY},
	{"memory", required_argument, NULL, LONG_MEMORY},
	{"min-rate", required_argument, NULL, LONG_MIN_RATE},
	{"connections", required_argument, NULL, LONG_CONNECTIONS},
	{"address-connections", required_argument, NULL, LONG_ADDRESS_CONNECTIONS},
	{"address-requests", required_argument, NULL, LONG_ADDRESS_REQUESTS},
	{"rate", required_argument, NULL, LONG_RATE},
	{"address-rate", required_argument, NULL, LONG_ADDRESS_RATE},
	{"listings", no_argument, NULL, 'd'},
	{"no-listings", no_argument, NULL, 'D'},
	{"fallback", required_argument, NULL, 'r'},
	{"cache", required_argument, NULL, LONG_CACHE},
	{"cache-files", required_argument, NULL, LONG_CACHE_FILES},
	{"gzip-cache", required_argument, NULL, LONG_GZIP_CACHE},
	{"no-cache-control", no_argument, NULL, LONG_NO_CACHE_CONTROL},
	{"mime", required_argument, NULL, LONG_MIME},
	{"vhosts", no_argument, NULL, 'v'},
	{"no-vhosts", no_argument, NULL, 'V'},
	{"symlinks", required_argument, NULL, LONG_SYMLINKS},
	{"defer-accept", required_argument, NULL, LONG_DEFER},
	{"sandbox", required_argument, NULL, LONG_SANDBOX},
	{"cert", required_argument, NULL, LONG_CERT},
	{"key", required_argument, NULL, LONG_KEY},
	{"cert-dir", required_argument, NULL, LONG_CERT_DIR},
	{"acme", optional_argument, NULL, LONG_ACME},
	{"acme-name", required_argument, NULL, LONG_ACME_NAME},
	{"acme-directory", required_argument, NULL, LONG_ACME_DIRECTORY},
	{"acme-eab", required_argument, NULL, LONG_ACME_EAB},
	{"acme-dir", required_argument, NULL, LONG_ACME_DIR},
	{"certificates", no_argument, NULL, LONG_CERTIFICATES},
	{"tls-port", required_argument, NULL, LONG_TLS_PORT},
	{"https", no_argument, NULL, 'e'},
	{"no-https", no_argument, NULL, 'E'},
	{"strict-sni", no_argument, NULL, LONG_STRICT_SNI},
	{"client-ca", required_argument, NULL, LONG_CLIENT_CA},
	{"https-redirect", no_argument, NULL, LONG_REDIRECT},
	{"hsts", required_argument, NULL, LONG_HSTS},
	{"log", required_argument, NULL, LONG_LOG},
	{"log-file", required_argument, NULL, LONG_LOG_FILE},
	{"error-log", required_argument, NULL, LONG_ERROR_LOG},
	{"error-level", required_argument, NULL, LONG_ERROR_LEVEL},
	{"no-log", no_argument, NULL, 'n'},
	{"take-over", required_argument, NULL, LONG_TAKE_OVER},
	{"proxy-protocol", required_argument, NULL, LONG_PROXY_PROTOCOL},
	{"trust", required_argument, NULL, LONG_TRUST},
	{"upstream", required_argument, NULL, LONG_UPSTREAM},
	{"upstream-gzip", no_argument, NULL, LONG_UPSTREAM_GZIP},
	{"drain-delay", required_argument, NULL, LONG_DRAIN_DELAY},
	{"health", required_argument, NULL, LONG_HEALTH},
	{"status", required_argument, NULL, LONG_STATUS},
	{"top", required_argument, NULL, LONG_TOP},
	{"check", no_argument, NULL, LONG_CHECK},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, LONG_VERSION},
	{0},
};

__attribute__((noreturn)) static void refuse_unknown(const char *argument) {
	const char *meant = nearest_option(long_options, argument + strspn(argument, "-"));
	if (meant) option_refuse("unknown option '%s': did you mean --%s?", argument, meant);
	option_refuse("unknown option '%s'", argument);
}

/* Warns of an option that a later one overrules. */
static void warn_if_overruled(bool overruled, const char *earlier, const char *later) {
	if (overruled) notice_line(LEVEL_WARNING, "%s has no effect, since %s comes after it", earlier, later);
}

static void add_cert(struct options *o, const char *file) {
	if (o->tls.certs == CERTS_MAX) option_refuse("more than %d certificates", CERTS_MAX);
	o->tls.cert[o->tls.certs++] = file;
}

/* Returns whether all addresses are in a net. */
static bool is_everything(const struct peer_net *net) {
	return net->bits == 0 || (net->bits == 96 && peer_is_ipv4(&net->first));
}

static void add_net(const char *name, struct peer_nets *nets, const char *text) {
	if (nets->count == PEER_NETS_MAX) option_refuse("%s can be given %d times", name, PEER_NETS_MAX);
	if (!peer_net_parse(text, &nets->net[nets->count++]))
		option_refuse("%s takes an address, one with a number of bits, as 10.0.0.0/8, or unix:, not '%s'", name, text);
}

static void add_proxies(struct peer_nets *proxies, const char *text) {
	add_net("--proxy-protocol", proxies, text);
	if (is_everything(&proxies->net[proxies->count - 1]))
		notice_line(LEVEL_WARNING,
					"--proxy-protocol %s lets every client say that it is another: make sure that only balancers can "
					"connect",
					text);
}

static void add_upstream(struct upstreams_allowed *allowed, const char *text) {
	if (allowed->count == UPSTREAM_ALLOWED_MAX) option_refuse("--upstream can be given %d times", UPSTREAM_ALLOWED_MAX);
	if (!upstreams_allow(allowed, text))
		option_refuse("--upstream takes ADDRESS[/BITS][:PORT], [IPV6ADDRESS[/BITS]][:PORT], a directory or unix:PATH, "
					  "not '%s'",
					  text);
}

static void add_trusted(struct trusted_proxies *trust, char *text) {
	char *comma = strchr(text, ',');
	const struct slice field = comma ? slice_of(comma + 1) : SLICE("x-forwarded-for");
	const bool is_forwarded = slice_equal_nocase(field, SLICE("forwarded"));
	if (!is_forwarded && !slice_equal_nocase(field, SLICE("x-forwarded-for")))
		option_refuse("--trust NET,FIELD knows 'forwarded' and 'x-forwarded-for', not '%s'; each NET takes a --trust",
					  field.at);
	if (comma) *comma = '\0';
	struct peer_nets *nets = is_forwarded ? &trust->forwarded : &trust->x_forwarded_for;
	add_net("--trust", nets, text);
	if (is_everything(&nets->net[nets->count - 1]))
		option_refuse("--trust %s would believe everybody: NET has to be that of proxies", text);
}

/* Checks a path, which must be as path_decode() leaves it, and returns it. */
static const char *health_path(const char *text) {
	char decoded[PATH_MAX];
	size_t length;
	const struct slice path = slice_of(text);
	if (path.length < 2 || path.length > sizeof decoded || strpbrk(text, "?#") || path_decode(path, decoded, &length) ||
		!slice_equal((struct slice){.at = decoded, .length = length}, slice_rest(path, 1)))
		option_refuse("--health takes a path such as /health, not '%s'", text);
	return text;
}

static void add_key(struct options *o, const char *file) {
	if (!o->tls.certs || o->tls.key[o->tls.certs - 1]) option_refuse("--key %s has no --cert before it", file);
	o->tls.key[o->tls.certs - 1] = file;
}

static const char *authority(const char *text) {
	if (strncmp(text, "https://", 8) != 0 || !text[8] || strpbrk(text, " \t\r\n"))
		option_refuse("--acme-directory takes the https:// URL of an authority's directory, not '%s'", text);
	return text;
}

static void add_acme_name(struct acme_options *a, const char *name) {
	if (!subject_possible(name))
		option_refuse("--acme-name takes a name of the public DNS, in lower case, as www.example.org, not '%s'", name);
	if (a->names == ACME_NAMES_MAX) option_refuse("more than %d names", ACME_NAMES_MAX);
	a->name[a->names++] = name;
}

static void check_email(const struct options *o) {
	const char *text = o->acme.email, *at = text ? strchr(text, '@') : NULL;
	if (text && (!at || at == text || !at[1] || strpbrk(text, " \t,:/")))
		option_refuse("--acme takes an email address, not '%s'", text);
}

/* Checks the options about ACME, and fills in their defaults. */
static void settle_acme(struct options *o) {
	static char directory[PATH_MAX], live[PATH_MAX];
	struct acme_options *a = &o->acme;
	if (!a->on && (a->names || a->eab)) option_refuse("--acme-name and --acme-eab go with --acme");
	if (a->on) check_email(o);
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

void options_parse(struct options *o, int argc, char **argv) {
	const uint64_t memory = platform_memory() / BUDGET_MACHINE; /* for connections; also the most for each cache */
	int listings = -1;                                          /* not given */
	const char *root = NULL;
	*o = (struct options){.root = ".",
						  .site.cache_control = true,
						  .site.starter = getuid(),
						  .site.gzip_cache = least(GZIP_CACHE, memory),
						  .port = geteuid() == 0 ? PORT_ROOT : PORT_USER,
						  .tls_port = geteuid() == 0 ? TLS_PORT_ROOT : TLS_PORT_USER,
						  .workers = (int)io_processors(),
						  .conn.timeout_s = TIMEOUT_S,
						  .conn.head_timeout_s = -1,
						  .conn.keepalive_timeout_s = -1,
						  .conn.client_memory = BUDGET_WORKER,
						  .conn.memory = memory,
						  .conn.min_rate = MIN_RATE,
						  .acme.url = ACME_URL,
						  .defer_accept = true,
						  .drain_delay_s = DRAIN_DELAY_S,
						  .error_level = LEVEL_INFO,
						  .sandbox = true};
	if (o->workers > WORKERS_MAX) o->workers = WORKERS_MAX;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, short_options, long_options, NULL)) != -1;) {
		switch (c) {
		case 'c': root = optarg; break;
		case LONG_CHECK: o->check = true; break;
		case 'p': o->port = option_number("--port", optarg, 0, 65535); break;
		case 'i':
			if (o->addresses == ADDRESSES_MAX) option_refuse("more than %d addresses to listen on", ADDRESSES_MAX);
			o->address[o->addresses++] = optarg;
			break;
		case 'u': o->user = optarg; break;
		case 'j': o->workers = option_number("--workers", optarg, 1, WORKERS_MAX); break;
		case 'T': o->conn.timeout_s = option_seconds("--timeout", optarg, TIMEOUT_MAX_S); break;
		case LONG_HEAD_TIMEOUT: o->conn.head_timeout_s = option_seconds("--head-timeout", optarg, TIMEOUT_MAX_S); break;
		case LONG_KEEPALIVE_TIMEOUT:
			o->conn.keepalive_timeout_s = option_seconds("--keepalive-timeout", optarg, TIMEOUT_MAX_S);
			break;
		case LONG_CLIENT_MEMORY:
			o->conn.client_memory = option_size("--client-memory", optarg, CLIENT_MEMORY_MIN);
			break;
		case LONG_MEMORY: o->conn.memory = option_size("--memory", optarg, MEMORY_MIN); break;
		case LONG_MIN_RATE: o->conn.min_rate = option_number("--min-rate", optarg, 0, MIN_RATE_MAX); break;
		case LONG_CONNECTIONS:
			o->connections = (unsigned)option_number("--connections", optarg, 1, CONNECTIONS_MAX);
			break;
		case LONG_ADDRESS_CONNECTIONS:
			o->limits.address_connections =
				(unsigned)option_number("--address-connections", optarg, 0, LIMITS_COUNT_MAX);
			break;
		case LONG_ADDRESS_REQUESTS:
			o->limits.address_requests = (unsigned)option_number("--address-requests", optarg, 0, LIMITS_COUNT_MAX);
			break;
		case LONG_RATE: o->limits.rate = option_rate("--rate", optarg); break;
		case LONG_ADDRESS_RATE: o->limits.address_rate = option_rate("--address-rate", optarg); break;
		case 'd':
			warn_if_overruled(listings == 0, "--no-listings", "--listings");
			listings = 1;
			break;
		case 'D':
			warn_if_overruled(listings == 1, "--listings", "--no-listings");
			listings = 0;
			break;
		case 'r': o->site.fallback = url(optarg); break;
		case LONG_CACHE: o->site.cache = option_size("--cache", optarg, CACHE_MIN); break;
		case LONG_CACHE_FILES: o->site.cache_files = option_number("--cache-files", optarg, 1, CACHE_FILES_MAX); break;
		case LONG_GZIP_CACHE: o->site.gzip_cache = option_size("--gzip-cache", optarg, 0); break;
		case LONG_NO_CACHE_CONTROL: o->site.cache_control = false; break;
		case LONG_MIME: o->mime = optarg; break;
		case 'v':
			warn_if_overruled(o->site.vhosts == VHOSTS_OFF, "--no-vhosts", "--vhosts");
			o->site.vhosts = VHOSTS_ONLY;
			break;
		case 'V':
			warn_if_overruled(o->site.vhosts == VHOSTS_ONLY, "--vhosts", "--no-vhosts");
			o->site.vhosts = VHOSTS_OFF;
			break;
		case 'e':
			warn_if_overruled(o->tls.https == HTTPS_OFF, "--no-https", "--https");
			o->tls.https = HTTPS_ON;
			break;
		case 'E':
			warn_if_overruled(o->tls.https == HTTPS_ON, "--https", "--no-https");
			o->tls.https = HTTPS_OFF;
			break;
		case LONG_CERT: add_cert(o, optarg); break;
		case LONG_KEY: add_key(o, optarg); break;
		case LONG_CERT_DIR: o->tls.cert_dir = optarg; break;
		case LONG_ACME:
			o->acme.on = true;
			o->acme.email = optarg;
			break;
		case LONG_ACME_NAME: add_acme_name(&o->acme, optarg); break;
		case LONG_ACME_DIRECTORY: o->acme.url = authority(optarg); break;
		case LONG_ACME_EAB: o->acme.eab = optarg; break;
		case LONG_ACME_DIR: o->acme.directory = optarg; break;
		case LONG_CERTIFICATES: o->certificates = true; break;
		case LONG_TLS_PORT: o->tls_port = option_number("--tls-port", optarg, 0, 65535); break;
		case LONG_STRICT_SNI: o->strict_sni = true; break;
		case LONG_CLIENT_CA: o->tls.client_ca = optarg; break;
		case LONG_REDIRECT: o->https_redirect = true; break;
		case LONG_HSTS: o->hsts_s = option_seconds("--hsts", optarg, HSTS_MAX_S); break;
		case LONG_LOG: o->log = log_format(optarg); break;
		case LONG_LOG_FILE: o->log_file = optarg; break;
		case LONG_ERROR_LOG: o->error_log = optarg; break;
		case LONG_ERROR_LEVEL: o->error_level = error_level(optarg); break;
		case 'n': o->log = LOG_OFF; break;
		case 'h': fputs(option_help, stdout); done();
		case LONG_SYMLINKS: o->site.symlinks_inside = option_either("--symlinks", optarg, "inside", "follow"); break;
		case LONG_DEFER: o->defer_accept = option_either("--defer-accept", optarg, "on", "off"); break;
		case LONG_PROXY_PROTOCOL: add_proxies(&o->conn.proxies, optarg); break;
		case LONG_TRUST: add_trusted(&o->conn.trust, optarg); break;
		case LONG_UPSTREAM: add_upstream(&o->site.upstreams, optarg); break;
		case LONG_UPSTREAM_GZIP: o->upstream_gzip = true; break;
		case LONG_TAKE_OVER: o->take_over = optarg; break;
		case LONG_DRAIN_DELAY:
			o->drain_delay_s = option_seconds("--drain-delay", optarg, TIMEOUT_MAX_S);
			o->drain_whole = true;
			break;
		case LONG_HEALTH:
			o->site.health = health_path(optarg);
			o->drain_whole = true;
			break;
		case LONG_STATUS: o->status = optarg; break;
		case LONG_TOP: o->top = optarg; break;
		case LONG_SANDBOX: o->sandbox = option_either("--sandbox", optarg, "on", "off"); break;
		case LONG_VERSION: print_version();
		case ':': option_refuse("option '%s' needs a value", argv[optind - 1]);
		default:
			if (optopt >= LONG_SYMLINKS || (optopt && strchr(short_options, optopt)))
				option_refuse("option '%s' takes no value", argv[optind - 1]);
			if (optopt) option_refuse("unknown option '-%c'", optopt);
			refuse_unknown(argv[optind - 1]);
		}
	}
	if (o->acme.on && !o->acme.email && optind < argc && strchr(argv[optind], '@'))
		option_refuse("the address of --acme follows a '=': --acme=%s", argv[optind]);
	if (optind + 1 < argc || (optind < argc && root))
		option_refuse("unexpected argument '%s': one directory is served", argv[argc - 1]);
	if (optind < argc) root = argv[optind];
	if (root) o->root = root;
	if (o->conn.keepalive_timeout_s == -1) o->conn.keepalive_timeout_s = o->conn.timeout_s;
	if (o->conn.head_timeout_s == -1)
		o->conn.head_timeout_s =
			o->conn.timeout_s && o->conn.timeout_s < HEAD_TIMEOUT_S ? o->conn.timeout_s : HEAD_TIMEOUT_S;
	settle_acme(o);
	bool https = o->tls.certs || o->acme.on || o->tls.cert_dir || o->tls.client_ca || o->strict_sni ||
				 o->https_redirect || o->hsts_s;
	if (https && o->tls.https == HTTPS_OFF) option_refuse("--no-https excludes the other options about HTTPS");
	if (https) o->tls.https = HTTPS_ON;
	if (o->log == LOG_OFF) o->log_file = NULL;
	if (o->connections && o->connections < (unsigned)o->workers)
		option_refuse("--connections takes at least one for each worker (-j %d), not %u", o->workers, o->connections);
	if (!o->site.cache) o->site.cache = least(least((uint64_t)o->workers * CACHE_WORKER, CACHE_MOST), memory);
	o->site.listings = listings == -1 ? o->site.vhosts != VHOSTS_ONLY : listings;
}
