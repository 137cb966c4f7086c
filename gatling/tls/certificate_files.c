/* certificate_files.c - see certificate_files.h. A scan lists the files and hashes what stat(2) says of them: a new
 * hash tells that something has changed. Loading goes through such a list. */
#include "gatling/tls/certificate_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_read.h"
#include "gatling/base/file_version.h"
#include "gatling/base/hash.h"
#include "gatling/base/notice.h"
#include "gatling/base/text.h"
#include "gatling/http/host.h"
#include "gatling/tls/tls_context.h"

enum { NAME_MAX_BYTES = 512, DAY_S = 24 * 60 * 60 };

/* A file in a place of the opener. */
struct location {
	int place;
	char *shown;      /* the path for messages, which ends with the name; NULL: no file */
	const char *name; /* in the place */
};

/* A certificate that a scan has found. */
struct found_certificate {
	struct location cert, key; /* without a key file the key is in that of the certificate */
	char *host;                /* of HOST.pem, else NULL */
	uint64_t state;            /* a hash of what stat(2) says of its files */
	const char *problem;       /* why it must not be loaded, NULL: see error */
	int error;                 /* errno with which its directory could not be read, else 0 */
};

struct scan {
	struct found_certificate *found;
	size_t count, loadable;
	uint64_t hash; /* of all files */
	bool complete; /* there was memory for it */
};

/* A directory and the names in it that were wanted. */
struct directory {
	int place;         /* -1: none */
	const char *shown; /* as on the command line */
	char **name;
	size_t count;
	struct file_version version;
	bool recent;
	int64_t again_ms; /* do not read it before */
};

struct certificate_files {
	struct opener *opener;
	struct directory root, cert_dir;
	struct location cert[CERTS_MAX], key[CERTS_MAX]; /* of the command line */
	unsigned certs;
	char *client_ca;
	uint64_t loaded, seen, failed; /* hashes of the scans that was loaded, that was last, and that had errors */
	unsigned scans;                /* since the last load */
	time_t day;                    /* on which the validity was last checked */
	pthread_mutex_t mutex;
	struct certificates *current; /* guarded by the mutex */
};

static int cannot_use(const char *file, const char *why) {
	notice(0, "cannot use certificate %s: %s", file, why);
	return -1;
}

/* --- files --- */

static struct location location_copy(const struct location *l) {
	char *shown = strdup(l->shown);
	return (struct location){.place = l->place, .shown = shown, .name = shown ? shown + (l->name - l->shown) : NULL};
}

/* Returns NULL with errno. */
static char *read_file(struct opener *opener, const struct location *l, size_t *length) {
	struct stat st = {0};
	char *text = file_load(opener_open(opener, l->place, l->name), CERTIFICATE_FILE_MAX, &st);
	*length = text ? (size_t)st.st_size : 0;
	return text;
}

/* Looks at a file as stat(2), and hashes the result into that of the scan, and into the state of its certificate. */
static int stat_file(struct opener *opener, struct scan *scan, int place, const char *name, uint64_t *state,
					 struct stat *st) {
	scan->hash = hash_octets(scan->hash, slice_of(name));
	if (opener_stat(opener, place, name, st) == -1) return -1;
	const struct file_version version = file_version_of(st);
	scan->hash = file_version_hash(scan->hash, &version);
	*state = file_version_hash(*state, &version);
	return 0;
}

/* --- scanning --- */

static void scan_free(struct scan *scan) {
	while (scan->count) {
		const struct found_certificate *c = &scan->found[--scan->count];
		free(c->cert.shown);
		free(c->key.shown);
		free(c->host);
	}
	free(scan->found);
}

/* Adds a copy of a certificate, after a look at its key and its response of OCSP. */
static void add_found(struct opener *opener, struct scan *scan, const struct found_certificate *found) {
	char ocsp[NAME_MAX_BYTES];
	struct stat st;
	struct found_certificate *grown = realloc(scan->found, (scan->count + 1) * sizeof *grown);
	if (!grown) {
		scan->complete = false;
		return;
	}
	scan->found = grown;
	struct found_certificate *c = &scan->found[scan->count++];
	*c = *found;
	c->cert = location_copy(&found->cert);
	if (found->key.shown) c->key = location_copy(&found->key);
	if (found->host) c->host = strdup(found->host);
	if (!c->cert.shown || (found->key.shown && !c->key.shown) || (found->host && !c->host)) scan->complete = false;
	if (c->problem || c->error || !scan->complete) return;
	if (++scan->loadable > CERTIFICATE_FILES_MAX) c->problem = "there are too many";
	snprintf(ocsp, sizeof ocsp, "%s.ocsp", c->cert.name);
	if (c->key.shown) (void)stat_file(opener, scan, c->key.place, c->key.name, &c->state, &st);
	(void)stat_file(opener, scan, c->cert.place, ocsp, &c->state, &st);
}

static bool is_host_pem(const char *name) {
	return slice_ends(slice_of(name), SLICE(".pem")) && strcmp(name, ".pem") != 0 && strcmp(name, "server.pem") != 0;
}

static bool is_any(const char *name) {
	(void)name;
	return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static void forget_names(struct directory *d) {
	while (d->count) free(d->name[--d->count]);
	free(d->name);
	d->name = NULL;
}

static int64_t now_ms(void) {
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Reads the wanted names, and sorts them, so that the same certificate always comes first. Returns false with errno. */
static bool read_names(struct opener *opener, struct directory *d, bool (*wanted)(const char *name)) {
	size_t length;
	char *text = opener_list(opener, d->place, &length);
	if (!text) return false;
	forget_names(d);
	bool complete = true;
	for (char *name = text; name < text + length && complete; name += strlen(name) + 1) {
		if (!wanted(name)) continue;
		char **grown = realloc(d->name, (d->count + 1) * sizeof *grown);
		if (grown) d->name = grown;
		complete = grown && (d->name[d->count] = strdup(name));
		d->count += complete;
	}
	free(text);
	if (d->count) qsort(d->name, d->count, sizeof *d->name, by_name);
	return complete;
}

/* Updates the names if the directory has changed. A large one that changes all the time is read for a twentieth of the
 * time. */
static void update_names(struct opener *opener, struct scan *scan, struct directory *d,
						 bool (*wanted)(const char *name)) {
	int64_t started = now_ms();
	struct stat st = {0};
	bool exists = opener_stat(opener, d->place, ".", &st) == 0;
	struct file_version now = file_version_of(&st);
	if (exists && ((!d->recent && file_version_same(&now, &d->version)) || started < d->again_ms)) return;
	if (!exists || !read_names(opener, d, wanted)) {
		const struct found_certificate unreadable = {
			.cert = {.place = d->place, .shown = (char *)(uintptr_t)d->shown, .name = d->shown}, .error = errno};
		add_found(opener, scan, &unreadable);
		return;
	}
	d->version = now;
	d->recent = file_version_recent(&now, time(NULL));
	d->again_ms = now_ms() + 20 * (now_ms() - started);
}

static bool holds_key(struct opener *opener, const struct location *l) {
	size_t length;
	char *text = read_file(opener, l, &length);
	bool holds = text && strstr(text, "PRIVATE KEY-----");
	free(text);
	return holds;
}

/* Scans a file in the root, where a file that everybody may read is served: it must not hold a key. Without a key it is
 * no certificate. */
static void scan_root_file(struct certificate_files *f, struct scan *scan, char *name, char *host) {
	struct found_certificate c = {.cert = {.place = f->root.place, .shown = name, .name = name}, .host = host};
	struct stat st;
	if (stat_file(f->opener, scan, f->root.place, name, &c.state, &st) == -1) {
		if (errno != EPERM) return;
		c.problem = "it is a symbolic link of neither root nor the owner of the file";
	} else if (!S_ISREG(st.st_mode)) {
		return;
	} else if (st.st_mode & S_IROTH) {
		if (!holds_key(f->opener, &c.cert)) return;
		c.problem = "everybody may read the private key in it, and would be served it (chmod o-r)";
	}
	add_found(f->opener, scan, &c);
}

static void scan_root(struct certificate_files *f, struct scan *scan) {
	char server[] = "server.pem", host[HOST_MAX + 1];
	if (!f->certs) scan_root_file(f, scan, server, NULL);
	update_names(f->opener, scan, &f->root, is_host_pem);
	for (size_t i = 0; i < f->root.count; i++) {
		struct slice name = slice_of(f->root.name[i]);
		if (name.length - strlen(".pem") > HOST_MAX) continue;
		*text_copy(host, slice_first(name, name.length - strlen(".pem"))) = '\0';
		scan_root_file(f, scan, f->root.name[i], host);
	}
}

static void scan_cert_dir(struct certificate_files *f, struct scan *scan) {
	const struct directory *d = &f->cert_dir;
	size_t length = d->shown ? strlen(d->shown) + 1 : 0;
	update_names(f->opener, scan, &f->cert_dir, is_any);
	for (size_t i = 0; i < d->count; i++) {
		char cert[2 * NAME_MAX_BYTES], key[2 * NAME_MAX_BYTES];
		struct stat st;
		snprintf(cert, sizeof cert, "%s/%s/fullchain.pem", d->shown, d->name[i]);
		snprintf(key, sizeof key, "%s/%s/privkey.pem", d->shown, d->name[i]);
		struct found_certificate c = {.cert = {.place = d->place, .shown = cert, .name = cert + length},
									  .key = {.place = d->place, .shown = key, .name = key + length}};
		if (stat_file(f->opener, scan, d->place, c.cert.name, &c.state, &st) == 0 || errno != ENOTDIR)
			add_found(f->opener, scan, &c);
	}
}

static struct scan scan_all(struct certificate_files *f) {
	struct scan scan = {.complete = true};
	for (unsigned i = 0; i < f->certs; i++) {
		struct found_certificate c = {.cert = f->cert[i], .key = f->key[i]};
		struct stat st;
		(void)stat_file(f->opener, &scan, c.cert.place, c.cert.name, &c.state, &st);
		add_found(f->opener, &scan, &c);
	}
	if (f->root.place != -1) scan_root(f, &scan);
	if (f->cert_dir.place != -1) scan_cert_dir(f, &scan);
	return scan;
}

/* --- loading --- */

/* Reads a certificate and its key into one text. Returns NULL with a reason in why. */
static char *read_pem(struct opener *opener, const struct found_certificate *c, char *why) {
	size_t length;
	char *key = NULL, *both = NULL, *pem = read_file(opener, &c->cert, &length);
	if (!pem) snprintf(why, CERTIFICATE_ERROR, "%s", strerror(errno));
	if (!pem || !c->key.shown) return pem;
	key = read_file(opener, &c->key, &length);
	if (!key || asprintf(&both, "%s\n%s", pem, key) == -1) {
		snprintf(why, CERTIFICATE_ERROR, "%s: %s", c->key.shown, strerror(errno));
		both = NULL;
	}
	free(pem);
	free(key);
	return both;
}

/* Returns whether the set has it now; else a reason is in why. */
static bool load_one(const struct certificate_files *f, struct certificates *set, const struct found_certificate *c,
					 char *why) {
	char warning[CERTIFICATE_ERROR], ocsp_name[NAME_MAX_BYTES];
	size_t length;
	char *pem = read_pem(f->opener, c, why);
	if (!pem) return false;
	snprintf(ocsp_name, sizeof ocsp_name, "%s.ocsp", c->cert.name);
	char *ocsp = read_file(f->opener, &(struct location){.place = c->cert.place, .name = ocsp_name}, &length);
	const struct certificate_source source = {.origin = c->cert.shown,
											  .pem = pem,
											  .host = c->host,
											  .ocsp = {.at = ocsp, .length = length},
											  .at_any_time = !certificates_hold(f->current, c->cert.shown)};
	bool added = certificates_add(set, &source, why, warning) == 0;
	if (added && *warning) notice(0, "cannot staple %s.ocsp: %s", c->cert.shown, warning);
	free(pem);
	free(ocsp);
	return added;
}

/* Reports it once a day. */
static void report_date(const char *origin, const char *what) {
	notice((uint64_t)time(NULL) / DAY_S, "%s: %s", origin, what);
}

/* Loads all that a scan has found. A certificate that cannot be loaded stays as it is in the current set. */
static int load(struct certificate_files *f, const struct scan *scan) {
	struct certificates *set = scan->complete ? certificates_new(f->client_ca) : NULL;
	size_t added = 0, failed = 0;
	if (!set) return -1;
	for (size_t i = 0; i < scan->count; i++) {
		const struct found_certificate *c = &scan->found[i];
		char why[CERTIFICATE_ERROR];
		snprintf(why, sizeof why, "%s", c->problem ? c->problem : strerror(c->error));
		if (!c->problem && !c->error && load_one(f, set, c, why)) {
			added++;
			continue;
		}
		bool kept = certificates_keep(set, f->current, c->cert.shown);
		failed++;
		added += kept;
		notice(c->state, "cannot use certificate %s: %s%s", c->cert.shown, why,
			   kept ? "; the last good one stays in use" : "");
	}
	if (!added && f->current && !certificates_empty(f->current))
		notice(f->seen, "the certificates are gone; the last ones stay in use");
	f->failed = failed || !added ? f->seen : 0;
	f->scans = 0;
	if ((f->current && !added) || certificates_seal(set) == -1) {
		certificates_release(set);
		return -1;
	}
	pthread_mutex_lock(&f->mutex);
	struct certificates *last = f->current;
	f->current = set;
	pthread_mutex_unlock(&f->mutex);
	certificates_release(last);
	f->loaded = f->seen;
	certificates_dates(f->current, report_date);
	return 0;
}

int certificate_files_load(struct certificate_files *f) {
	struct scan scan = scan_all(f);
	f->seen = scan.hash;
	int result = load(f, &scan);
	bool found = f->certs || scan.loadable;
	scan_free(&scan);
	if (result == -1) return cannot_use(f->root.shown, strerror(ENOMEM));
	if (!certificates_empty(f->current)) return 0;
	if (found) notice(0, "no certificate that can be used, so no HTTPS yet");
	else if (f->cert_dir.shown)
		notice(0, "no certificate in %s, so no HTTPS yet: put NAME/fullchain.pem and NAME/privkey.pem there",
			   f->cert_dir.shown);
	else notice(0, "no certificate, so no HTTPS yet: put server.pem into %s, or name one with --cert", f->root.shown);
	return 0;
}

bool certificate_files_refresh(struct certificate_files *f) {
	struct scan scan = scan_all(f);
	bool settled = scan.hash == f->seen;
	f->seen = scan.hash;
	time_t day = time(NULL) / DAY_S;
	if (day != f->day) certificates_dates(f->current, report_date);
	f->day = day;
	/* an error may pass: a certificate that becomes valid tomorrow, or a lack of descriptors */
	bool again = scan.hash == f->failed && ++f->scans >= CERTIFICATE_RETRY_S / CERTIFICATE_CHECK_S;
	bool changed = scan.hash != f->loaded && scan.hash != f->failed;
	bool loaded = settled && (again || changed) && load(f, &scan) == 0;
	scan_free(&scan);
	return loaded;
}

struct certificates *certificate_files_current(struct certificate_files *f) {
	pthread_mutex_lock(&f->mutex);
	struct certificates *current = f->current;
	certificates_retain(current);
	pthread_mutex_unlock(&f->mutex);
	return current;
}

/* --- the command line --- */

/* Adds the directory of a file, and locates the file in it. */
static int add_file(struct opener *opener, struct location *l, const char *path) {
	char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;
	*l = (struct location){.place = -1, .shown = strdup(path)};
	if (!directory || !l->shown) {
		free(directory);
		return cannot_use(path, strerror(ENOMEM));
	}
	l->name = l->shown + (slash ? slash + 1 - directory : 0);
	if (slash) slash[slash == directory] = '\0';
	int fd = open(slash ? directory : ".", PLATFORM_PATH | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	if (fd != -1) l->place = opener_add(opener, fd, OPENER_FILE, l->name);
	return l->place == -1 ? cannot_use(path, strerror(errno)) : 0;
}

/* Adds a certificate and its key, if their directories exist. */
static void add_pair(struct certificate_files *f, const char *cert, const char *key) {
	struct location *c = &f->cert[f->certs], *k = &f->key[f->certs];
	if (add_file(f->opener, c, cert) == 0 && (!key || add_file(f->opener, k, key) == 0)) {
		f->certs++;
		return;
	}
	free(c->shown);
	free(k->shown);
	*c = *k = (struct location){0};
}

/* Returns -1 with errno. */
static int add_directory(struct opener *opener, struct directory *d, const char *path, enum opener_rule rule) {
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	d->shown = path;
	d->place = fd == -1 ? -1 : opener_add(opener, fd, rule, NULL);
	return d->place;
}

static int read_client_ca(struct certificate_files *f, const char *file) {
	struct stat st;
	f->client_ca = file_load(open(file, O_RDONLY | O_CLOEXEC), CERTIFICATE_FILE_MAX, &st);
	if (!f->client_ca) return notice_cannot("use", file, strerror(errno));
	SSL_CTX *probe = tls_context_new(f->client_ca);
	SSL_CTX_free(probe);
	return probe ? 0 : notice_cannot("use", file, "there is no certificate in it (PEM)");
}

int certificate_files_new(const struct certificate_options *o, const char *root, struct opener *opener,
						  struct certificate_files **files) {
	*files = NULL;
	if (o->https == HTTPS_OFF) return 0;
	struct certificate_files *f = calloc(1, sizeof *f);
	if (!f) return cannot_use(root, strerror(ENOMEM));
	f->opener = opener;
	f->cert_dir.place = -1;
	pthread_mutex_init(&f->mutex, NULL);
	*files = f;
	for (unsigned i = 0; i < o->certs; i++) add_pair(f, o->cert[i], o->key[i]);
	if (add_directory(opener, &f->root, root, OPENER_PEMS) == -1) return notice_cannot("serve", root, strerror(errno));
	if (o->cert_dir && add_directory(opener, &f->cert_dir, o->cert_dir, OPENER_PAIRS) == -1)
		(void)cannot_use(o->cert_dir, strerror(errno));
	return o->client_ca ? read_client_ca(f, o->client_ca) : 0;
}

void certificate_files_find(const struct certificate_options *o, struct certificate_files **files) {
	if (!*files) return;
	struct scan scan = scan_all(*files);
	bool wanted = scan.count || !scan.complete || o->https == HTTPS_ON;
	scan_free(&scan);
	if (wanted) return;
	certificate_files_free(*files);
	*files = NULL;
}

void certificate_files_free(struct certificate_files *f) {
	if (!f) return;
	for (unsigned i = 0; i < f->certs; i++) {
		free(f->cert[i].shown);
		free(f->key[i].shown);
	}
	forget_names(&f->root);
	forget_names(&f->cert_dir);
	free(f->client_ca);
	certificates_release(f->current);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}
