/* certificate_files.c - see certificate_files.h. A walk over the files hashes what stat(2) says of each, and loads them
 * if told to; what has changed is told by the hash. */
#include "gatling/tls/certificate_files.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "gatling/base/file_version.h"
#include "gatling/base/hash.h"
#include "gatling/base/notice.h"
#include "gatling/base/platform.h"
#include "gatling/http/host.h"
#include "gatling/tls/tls_context.h"

enum { SHOWN_MAX = 512, DAY_S = 24 * 60 * 60 };

/* A file: of a place of the opener. */
struct named {
	int place;
	char *shown; /* the whole path, as the command line names it */
	const char *name;
};

/* The names in a place of the opener, as they were in this state of it. */
struct directory {
	int place; /* -1: none */
	char **name;
	size_t count;
	struct file_version identity;
	bool recent;
	int64_t again_ms; /* not read before */
};

struct certificate_files {
	struct opener *opener;
	const char *shown; /* the root, as the command line names it */
	struct directory root, cert_dir;
	const char *cert_dir_shown;
	struct named cert[CERTS_MAX], key[CERTS_MAX]; /* not shown: there is none */
	unsigned certs;
	char *client_ca;
	uint64_t loaded, seen,
		refused;    /* hashes of the files that are loaded, of the last look, and with something wrong */
	unsigned tried; /* looks since those were loaded */
	time_t day;     /* of the last look at how long they are valid */
	pthread_mutex_t mutex;
	struct certificates *current; /* guarded by it */
};

/* One walk. */
struct walk {
	struct opener *opener;
	struct certificates *set;        /* NULL: only look */
	const struct certificates *last; /* those before; NULL: none */
	uint64_t hash, state;            /* of all files; of those of one certificate */
	unsigned files, added, refused;
};

/* --- one file --- */

/* Goes on with the last good state of the file, if there is one; else without it. */
static void refuse(struct walk *walk, const char *file, const char *why) {
	bool kept = walk->set && certificates_keep(walk->set, walk->last, file);
	walk->refused++;
	walk->added += kept;
	if (walk->set)
		notice(walk->state, "cannot use certificate %s: %s%s", file, why,
			   kept ? "; the last good one stays in use" : "");
}

/* Reads a file whole, and closes it; with a NUL behind it. NULL with errno. */
static char *read_whole(int fd, size_t *length) {
	struct stat st;
	char *text = NULL;
	*length = 0;
	if (fd == -1) return NULL;
	if (fstat(fd, &st) == 0) {
		if (!S_ISREG(st.st_mode)) errno = EINVAL;
		else if (st.st_size > CERTIFICATE_FILE_MAX) errno = EFBIG;
		else text = calloc(1, (size_t)st.st_size + 1);
	}
	while (text && *length < (size_t)st.st_size) {
		ssize_t n = read(fd, text + *length, (size_t)st.st_size - *length);
		if (n == -1 && errno == EINTR) continue;
		if (n == -1) {
			free(text);
			text = NULL;
		}
		if (n <= 0) break;
		*length += (size_t)n;
	}
	int error = errno;
	close(fd);
	errno = error;
	return text;
}

static char *read_file(const struct walk *walk, int place, const char *name, size_t *length) {
	return read_whole(opener_open(walk->opener, place, name), length);
}

/* As stat(2). */
static int look_at(struct walk *walk, int place, const char *name, struct stat *st) {
	walk->hash = hash_octets(walk->hash, (struct slice){.at = name, .length = strlen(name)});
	if (opener_stat(walk->opener, place, name, st) == -1) return -1;
	const uint64_t known[] = {(uint64_t)st->st_dev,
							  (uint64_t)st->st_ino,
							  (uint64_t)st->st_size,
							  (uint64_t)st->st_mode,
							  (uint64_t)st->PLATFORM_MTIME.tv_sec,
							  (uint64_t)st->PLATFORM_MTIME.tv_nsec,
							  (uint64_t)st->PLATFORM_CTIME.tv_sec,
							  (uint64_t)st->PLATFORM_CTIME.tv_nsec};
	walk->state = hash_octets(walk->state, (struct slice){.at = (const char *)known, .length = sizeof known});
	walk->hash = hash_octets(walk->hash, (struct slice){.at = (const char *)known, .length = sizeof known});
	return 0;
}

/* Adds a certificate that has been looked at, after a look at its key, which may be in the same file (key is NULL), and
 * its response of OCSP. */
static void visit(struct walk *walk, const struct named *cert, const struct named *key, const char *host) {
	char ocsp_name[SHOWN_MAX], why[CERTIFICATE_ERROR], warning[CERTIFICATE_ERROR];
	size_t length, key_length, ocsp_length = 0;
	struct stat st;
	snprintf(ocsp_name, sizeof ocsp_name, "%s.ocsp", cert->name);
	if (++walk->files > CERTIFICATE_FILES_MAX) {
		refuse(walk, cert->shown, "there are too many");
		return;
	}
	if (key) (void)look_at(walk, key->place, key->name, &st);
	(void)look_at(walk, cert->place, ocsp_name, &st);
	if (!walk->set) return;

	char *pem = read_file(walk, cert->place, cert->name, &length), *ocsp = NULL;
	if (!pem) {
		refuse(walk, cert->shown, strerror(errno));
		return;
	}
	char *key_pem = key ? read_file(walk, key->place, key->name, &key_length) : NULL;
	char *both = key_pem ? realloc(pem, length + key_length + 2) : pem;
	if (key && !both) errno = ENOMEM;
	if (key && (!key_pem || !both)) {
		snprintf(why, sizeof why, "%s: %s", key->shown, strerror(errno));
		refuse(walk, cert->shown, why);
	} else {
		if (key) {
			both[length] = '\n';
			memcpy(both + length + 1, key_pem, key_length + 1);
		}
		ocsp = read_file(walk, cert->place, ocsp_name, &ocsp_length);
		const struct certificate_source source = {
			.origin = cert->shown,
			.pem = both,
			.host = host,
			.ocsp = {.at = ocsp, .length = ocsp_length},
			.at_any_time = !certificates_hold(walk->last, cert->shown), /* better than none */
		};
		if (certificates_add(walk->set, &source, why, warning) == -1) {
			refuse(walk, cert->shown, why);
		} else {
			walk->added++;
			if (*warning) notice(0, "cannot staple %s.ocsp: %s", cert->shown, warning);
		}
	}
	free(both ? both : pem);
	free(key_pem);
	free(ocsp);
}

/* --- the directories --- */

static bool is_pem(const char *name) {
	size_t n = strlen(name);
	return n > strlen(".pem") && strcmp(name + n - strlen(".pem"), ".pem") == 0 && strcmp(name, "server.pem") != 0;
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

/* Reads the names in a directory that are wanted, sorted, so that which certificate comes first does not change. false
 * with errno. */
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

/* Brings the names up to date if the directory has changed. One that is large and changes all the time is read for a
 * twentieth of the time. */
static void look_at_names(struct walk *walk, struct directory *d, const char *shown, bool (*wanted)(const char *name)) {
	int64_t started = now_ms();
	struct stat st = {0};
	bool there = opener_stat(walk->opener, d->place, ".", &st) == 0;
	struct file_version now = file_version_of(&st);
	if (there && ((!d->recent && file_version_same(&now, &d->identity)) || started < d->again_ms)) return;
	if (!there || !read_names(walk->opener, d, wanted)) {
		refuse(walk, shown, strerror(errno));
		return;
	}
	d->identity = now;
	d->recent = file_version_recent(&now, time(NULL));
	d->again_ms = now_ms() + 20 * (now_ms() - started);
}

/* Whether a file in the root is a key, to be used: what everybody may read is served, so it must not be one. */
static bool holds_key(struct walk *walk, int root, const char *name) {
	struct stat st;
	size_t length;
	walk->state = 0;
	if (look_at(walk, root, name, &st) == -1) {
		if (errno == EPERM) refuse(walk, name, "it is a symbolic link of neither root nor the owner of the file");
		return false;
	}
	if (!S_ISREG(st.st_mode)) return false;
	if (!(st.st_mode & S_IROTH)) return true;
	char *text = read_file(walk, root, name, &length);
	bool key = text && strstr(text, "PRIVATE KEY-----");
	free(text);
	if (key) refuse(walk, name, "everybody may read the private key in it, and would be served it (chmod o-r)");
	return false;
}

static void visit_root(struct certificate_files *f, struct walk *walk) {
	struct named server = {.place = f->root.place, .shown = "server.pem", .name = "server.pem"};
	if (!f->certs && holds_key(walk, server.place, server.name)) visit(walk, &server, NULL, NULL);
	look_at_names(walk, &f->root, f->shown, is_pem);
	for (size_t i = 0; i < f->root.count; i++) {
		char host[HOST_MAX + 1];
		char *name = f->root.name[i];
		struct named file = {.place = f->root.place, .shown = name, .name = name};
		size_t length = strlen(name) - strlen(".pem");
		if (length <= HOST_MAX && holds_key(walk, f->root.place, name)) {
			memcpy(host, name, length);
			host[length] = '\0';
			visit(walk, &file, NULL, host);
		}
	}
}

static void visit_cert_dir(struct certificate_files *f, struct walk *walk) {
	look_at_names(walk, &f->cert_dir, f->cert_dir_shown, is_any);
	for (size_t i = 0; i < f->cert_dir.count; i++) {
		const char *name = f->cert_dir.name[i];
		char cert[SHOWN_MAX], key[SHOWN_MAX], cert_shown[2 * SHOWN_MAX], key_shown[2 * SHOWN_MAX];
		struct stat st;
		snprintf(cert, sizeof cert, "%s/fullchain.pem", name);
		snprintf(key, sizeof key, "%s/privkey.pem", name);
		snprintf(cert_shown, sizeof cert_shown, "%s/%s", f->cert_dir_shown, cert);
		snprintf(key_shown, sizeof key_shown, "%s/%s", f->cert_dir_shown, key);
		struct named pair[2] = {{.place = f->cert_dir.place, .shown = cert_shown, .name = cert},
								{.place = f->cert_dir.place, .shown = key_shown, .name = key}};
		walk->state = 0;
		if (look_at(walk, f->cert_dir.place, cert, &st) == 0 || errno != ENOTDIR) visit(walk, &pair[0], &pair[1], NULL);
	}
}

static void walk_all(struct certificate_files *f, struct walk *walk) {
	walk->opener = f->opener;
	for (unsigned i = 0; i < f->certs; i++) {
		struct stat st;
		walk->state = 0;
		(void)look_at(walk, f->cert[i].place, f->cert[i].name, &st);
		visit(walk, &f->cert[i], f->key[i].shown ? &f->key[i] : NULL, NULL);
	}
	if (f->root.place != -1) visit_root(f, walk);
	if (f->cert_dir.place != -1) visit_cert_dir(f, walk);
}

/* --- the interface --- */

static int complain(const char *what, const char *why) {
	notice(0, "cannot use certificate %s: %s", what, why);
	return -1;
}

static int add_named(struct opener *opener, struct named *file, const char *path) {
	file->shown = strdup(path);
	char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;
	if (!file->shown || !directory) {
		free(directory);
		return complain(path, strerror(ENOMEM));
	}
	file->name = slash ? file->shown + (slash - directory) + 1 : file->shown;
	if (slash) slash[slash == directory] = '\0';
	int fd = open(slash ? directory : ".", PLATFORM_PATH | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	file->place = fd == -1 ? -1 : opener_add(opener, fd, OPENER_FILE, file->name);
	return file->place == -1 ? complain(path, strerror(errno)) : 0;
}

/* What is in a directory that is not there is not looked for again. */
static void add_pair(struct certificate_files *f, const char *cert, const char *key) {
	struct named *own = &f->cert[f->certs], *its_key = &f->key[f->certs];
	if (add_named(f->opener, own, cert) == 0 && (!key || add_named(f->opener, its_key, key) == 0)) {
		f->certs++;
		return;
	}
	free(own->shown);
	free(its_key->shown);
	*own = *its_key = (struct named){0};
}

/* Its place, or -1 with errno. */
static int add_directory(struct opener *opener, const char *path, enum opener_rule rule) {
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd == -1 ? -1 : opener_add(opener, fd, rule, NULL);
}

static int add_all(const struct certificate_options *o, const char *root, struct certificate_files *f) {
	size_t length;
	for (unsigned i = 0; i < o->certs; i++) add_pair(f, o->cert[i], o->key[i]);
	if ((f->root.place = add_directory(f->opener, root, OPENER_PEMS)) == -1) {
		fprintf(stderr, "gatling: cannot serve %s: %s\n", root, strerror(errno));
		return -1;
	}
	f->cert_dir_shown = o->cert_dir;
	if (o->cert_dir && (f->cert_dir.place = add_directory(f->opener, o->cert_dir, OPENER_PAIRS)) == -1)
		(void)complain(o->cert_dir, strerror(errno));
	if (o->client_ca && !(f->client_ca = read_whole(open(o->client_ca, O_RDONLY | O_CLOEXEC), &length))) {
		fprintf(stderr, "gatling: cannot use %s: %s\n", o->client_ca, strerror(errno));
		return -1;
	}
	SSL_CTX *probe = f->client_ca ? tls_context_new(f->client_ca) : NULL;
	SSL_CTX_free(probe);
	if (f->client_ca && !probe) {
		fprintf(stderr, "gatling: cannot use %s: there is no certificate in it (PEM)\n", o->client_ca);
		return -1;
	}
	return 0;
}

int certificate_files_new(const struct certificate_options *o, const char *root, struct opener *opener,
						  struct certificate_files **files) {
	*files = NULL;
	if (o->https == HTTPS_OFF) return 0;
	struct certificate_files *f = calloc(1, sizeof *f);
	if (!f) return complain(root, strerror(ENOMEM));
	f->opener = opener;
	f->shown = root;
	f->root.place = f->cert_dir.place = -1;
	pthread_mutex_init(&f->mutex, NULL);
	*files = f;
	return add_all(o, root, f);
}

void certificate_files_find(const struct certificate_options *o, struct certificate_files **files) {
	struct walk walk = {0};
	if (!*files) return;
	walk_all(*files, &walk);
	if (walk.files || walk.refused) return;
	if (o->https == HTTPS_ON) return;
	certificate_files_free(*files);
	*files = NULL;
}

void certificate_files_free(struct certificate_files *f) {
	if (!f) return;
	for (unsigned i = 0; i < CERTS_MAX; i++) {
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

/* Says it once a day. */
static void tell_date(void *context, const char *origin, const char *what) {
	(void)context;
	notice((uint64_t)time(NULL) / DAY_S, "%s: %s", origin, what);
}

/* Loads everything; says what is wrong. */
static int load(struct certificate_files *f) {
	struct walk walk = {.set = certificates_new(f->client_ca), .last = f->current};
	if (!walk.set) return -1;
	walk_all(f, &walk);
	if (!walk.added && f->current && !certificates_empty(f->current))
		notice(f->seen, "the certificates are gone; the last ones stay in use");
	f->refused = walk.refused || !walk.added ? f->seen : 0;
	f->tried = 0;
	if ((f->current && !walk.added) || certificates_seal(walk.set) == -1) {
		certificates_release(walk.set);
		return -1;
	}
	pthread_mutex_lock(&f->mutex);
	struct certificates *last = f->current;
	f->current = walk.set;
	pthread_mutex_unlock(&f->mutex);
	certificates_release(last);
	f->loaded = f->seen;
	certificates_dates(f->current, tell_date, NULL);
	return 0;
}

int certificate_files_load(struct certificate_files *f) {
	struct walk walk = {0};
	walk_all(f, &walk);
	f->seen = walk.hash;
	if (load(f) == -1) return complain(f->shown, strerror(ENOMEM));
	if (!certificates_empty(f->current)) return 0;
	if (f->certs || walk.files) notice(0, "no certificate that can be used, so no HTTPS yet");
	else if (f->cert_dir_shown)
		notice(0, "no certificate in %s, so no HTTPS yet: put NAME/fullchain.pem and NAME/privkey.pem there",
			   f->cert_dir_shown);
	else notice(0, "no certificate, so no HTTPS yet: put server.pem into %s, or name one with --cert", f->shown);
	return 0;
}

bool certificate_files_refresh(struct certificate_files *f) {
	struct walk walk = {0};
	walk_all(f, &walk);
	bool settled = walk.hash == f->seen;
	f->seen = walk.hash;
	time_t day = time(NULL) / DAY_S;
	if (day != f->day) certificates_dates(f->current, tell_date, NULL);
	f->day = day;
	/* what is wrong may pass: a certificate for tomorrow, or a descriptor too few */
	bool again = walk.hash == f->refused && ++f->tried >= CERTIFICATE_RETRY_S / CERTIFICATE_CHECK_S;
	if (!settled || (!again && (walk.hash == f->loaded || walk.hash == f->refused))) return false;
	return load(f) == 0;
}

struct certificates *certificate_files_current(struct certificate_files *f) {
	pthread_mutex_lock(&f->mutex);
	struct certificates *current = f->current;
	certificates_retain(current);
	pthread_mutex_unlock(&f->mutex);
	return current;
}
