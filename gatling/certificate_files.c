/* certificate_files.c - see certificate_files.h. A walk over the files hashes what stat(2) says of each, and loads them
 * if told to; what has changed is told by the hash. */
#include "gatling/certificate_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gatling/hash.h"
#include "gatling/host.h"
#include "gatling/platform.h"
#include "gatling/tls_context.h"

enum { SHOWN_MAX = 512 };

/* A file as the command line names it: the directory is opened once, the file each time. */
struct named {
	int directory;
	char *shown; /* the whole path */
	const char *name;
};

struct certificate_files {
	int root, cert_dir; /* descriptors, -1 for none */
	const char *cert_dir_shown;
	struct named cert[CERTS_MAX], key[CERTS_MAX]; /* not shown: there is none */
	unsigned certs;
	char *client_ca;
	uint64_t loaded, seen,
		refused;    /* hashes of the files that are loaded, of the last look, and with something wrong */
	unsigned tried; /* looks since those were loaded */
	pthread_mutex_t mutex;
	struct certificates *current; /* guarded by it */
};

/* One walk. */
struct walk {
	struct certificates *set;        /* NULL: only look */
	const struct certificates *last; /* those before; NULL at the start, when all have to be good */
	bool silent;                     /* what is wrong has been said */
	uint64_t hash;
	unsigned files, added, refused;
};

/* --- one file --- */

/* Goes on with the last good state of the file, if there is one; else without it. */
static void refuse(struct walk *walk, const char *file, const char *why) {
	bool kept = walk->set && certificates_keep(walk->set, walk->last, file);
	walk->refused++;
	walk->added += kept;
	if (!walk->set || walk->silent) return;
	fprintf(stderr, "gatling: cannot use certificate %s: %s%s\n", file, why,
			kept ? "; the last good one stays in use" : "");
}

static bool stopped(const struct walk *walk) { return walk->refused && !walk->last; }

/* Reads a file whole; with a NUL behind it. NULL with errno. */
static char *read_file(int directory, const char *name, size_t *length) {
	struct stat st;
	char *text = NULL;
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd == -1) return NULL;
	*length = 0;
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

static void look_at(struct walk *walk, int directory, const char *name) {
	struct stat st;
	walk->hash = hash_octets(walk->hash, (struct slice){.at = name, .length = strlen(name)});
	if (fstatat(directory, name, &st, 0) == -1) return;
	const uint64_t known[] = {(uint64_t)st.st_dev,
							  (uint64_t)st.st_ino,
							  (uint64_t)st.st_size,
							  (uint64_t)st.st_mode,
							  (uint64_t)st.PLATFORM_MTIME.tv_sec,
							  (uint64_t)st.PLATFORM_MTIME.tv_nsec,
							  (uint64_t)st.PLATFORM_CTIME.tv_sec,
							  (uint64_t)st.PLATFORM_CTIME.tv_nsec};
	walk->hash = hash_octets(walk->hash, (struct slice){.at = (const char *)known, .length = sizeof known});
}

/* Looks at a certificate, its key, which may be in the same file (key is NULL), and its response of OCSP; adds them. */
static void visit(struct walk *walk, const struct named *cert, const struct named *key, const char *host) {
	char ocsp_name[SHOWN_MAX], why[CERTIFICATE_ERROR];
	size_t length, key_length, ocsp_length = 0;
	snprintf(ocsp_name, sizeof ocsp_name, "%s.ocsp", cert->name);
	if (stopped(walk)) return;
	if (++walk->files > CERTIFICATE_FILES_MAX) {
		refuse(walk, cert->shown, "there are too many");
		return;
	}
	look_at(walk, cert->directory, cert->name);
	if (key) look_at(walk, key->directory, key->name);
	look_at(walk, cert->directory, ocsp_name);
	if (!walk->set) return;

	char *pem = read_file(cert->directory, cert->name, &length), *ocsp = NULL;
	if (!pem) {
		refuse(walk, cert->shown, strerror(errno));
		return;
	}
	char *key_pem = key ? read_file(key->directory, key->name, &key_length) : NULL;
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
		ocsp = read_file(cert->directory, ocsp_name, &ocsp_length);
		struct slice response = {.at = ocsp, .length = ocsp_length};
		if (certificates_add(walk->set, cert->shown, both, host, response, why) == -1) refuse(walk, cert->shown, why);
		else walk->added++;
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

struct names {
	char **name;
	size_t count;
};

/* The names in a directory, sorted, so that which certificate comes first does not change. */
static struct names scan(struct walk *walk, int directory, bool (*wanted)(const char *name)) {
	struct names list = {0};
	int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *stream = fd == -1 ? NULL : fdopendir(fd);
	if (!stream) {
		refuse(walk, "directory", strerror(errno));
		if (fd != -1) close(fd);
		return list;
	}
	for (const struct dirent *d; !stopped(walk) && (d = readdir(stream));) {
		if (d->d_name[0] == '.' || !wanted(d->d_name)) continue;
		char **grown = realloc(list.name, (list.count + 1) * sizeof *grown);
		if (grown) list.name = grown;
		if (grown && (grown[list.count] = strdup(d->d_name))) list.count++;
		else refuse(walk, d->d_name, strerror(ENOMEM));
	}
	closedir(stream);
	if (list.count) qsort(list.name, list.count, sizeof *list.name, by_name);
	return list;
}

static void names_free(struct names *list) {
	while (list->count) free(list->name[--list->count]);
	free(list->name);
}

/* Whether a file in the root is a key, to be used: what everybody may read is served, so it must not be one. */
static bool holds_key(struct walk *walk, int root, const char *name) {
	struct stat st;
	size_t length;
	look_at(walk, root, name);
	if (fstatat(root, name, &st, 0) == -1 || !S_ISREG(st.st_mode)) return false;
	if (!(st.st_mode & S_IROTH)) return true;
	char *text = read_file(root, name, &length);
	bool key = text && strstr(text, "PRIVATE KEY-----");
	free(text);
	if (key) refuse(walk, name, "everybody may read the private key in it, and would be served it (chmod o-r)");
	return false;
}

static void visit_root(const struct certificate_files *f, struct walk *walk) {
	struct named server = {.directory = f->root, .shown = "server.pem", .name = "server.pem"};
	struct stat st;
	if (!f->certs && fstatat(f->root, server.name, &st, 0) == 0 && holds_key(walk, f->root, server.name))
		visit(walk, &server, NULL, NULL);
	struct names list = scan(walk, f->root, is_pem);
	for (size_t i = 0; i < list.count; i++) {
		char host[HOST_MAX + 1];
		char *name = list.name[i];
		struct named file = {.directory = f->root, .shown = name, .name = name};
		size_t length = strlen(name) - strlen(".pem");
		if (length <= HOST_MAX && holds_key(walk, f->root, name)) {
			memcpy(host, name, length);
			host[length] = '\0';
			visit(walk, &file, NULL, host);
		}
	}
	names_free(&list);
}

static void visit_cert_dir(const struct certificate_files *f, struct walk *walk) {
	struct names list = scan(walk, f->cert_dir, is_any);
	for (size_t i = 0; i < list.count; i++) {
		char cert[SHOWN_MAX], key[SHOWN_MAX], cert_shown[2 * SHOWN_MAX], key_shown[2 * SHOWN_MAX];
		struct stat st;
		snprintf(cert, sizeof cert, "%s/fullchain.pem", list.name[i]);
		snprintf(key, sizeof key, "%s/privkey.pem", list.name[i]);
		snprintf(cert_shown, sizeof cert_shown, "%s/%s", f->cert_dir_shown, cert);
		snprintf(key_shown, sizeof key_shown, "%s/%s", f->cert_dir_shown, key);
		struct named pair[2] = {{.directory = f->cert_dir, .shown = cert_shown, .name = cert},
								{.directory = f->cert_dir, .shown = key_shown, .name = key}};
		if (fstatat(f->cert_dir, cert, &st, 0) == 0 || errno != ENOTDIR) visit(walk, &pair[0], &pair[1], NULL);
	}
	names_free(&list);
}

static void walk_all(const struct certificate_files *f, struct walk *walk) {
	for (unsigned i = 0; i < f->certs; i++) visit(walk, &f->cert[i], f->key[i].shown ? &f->key[i] : NULL, NULL);
	if (f->root != -1) visit_root(f, walk);
	if (f->cert_dir != -1) visit_cert_dir(f, walk);
}

/* --- the interface --- */

static int complain(const char *what, const char *why) {
	fprintf(stderr, "gatling: cannot use certificate %s: %s\n", what, why);
	return -1;
}

static int open_named(struct named *file, const char *path) {
	file->shown = strdup(path);
	char *directory = strdup(path), *slash = directory ? strrchr(directory, '/') : NULL;
	if (!file->shown || !directory) {
		free(directory);
		return complain(path, strerror(ENOMEM));
	}
	file->name = slash ? file->shown + (slash - directory) + 1 : file->shown;
	if (slash) slash[slash == directory] = '\0';
	file->directory = open(slash ? directory : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(directory);
	return file->directory == -1 ? complain(path, strerror(errno)) : 0;
}

static int open_all(const struct options *o, struct certificate_files *f) {
	size_t length;
	for (; f->certs < o->certs; f->certs++) {
		if (open_named(&f->cert[f->certs], o->cert[f->certs]) == -1) return -1;
		if (o->key[f->certs] && open_named(&f->key[f->certs], o->key[f->certs]) == -1) return -1;
	}
	f->root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->cert_dir) {
		f->cert_dir_shown = o->cert_dir;
		f->cert_dir = open(o->cert_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (f->cert_dir == -1) return complain(o->cert_dir, strerror(errno));
	}
	if (o->client_ca && !(f->client_ca = read_file(AT_FDCWD, o->client_ca, &length))) {
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

int certificate_files_open(const struct options *o, struct certificate_files **files) {
	*files = NULL;
	if (o->https == HTTPS_OFF) return 0;
	struct certificate_files *f = calloc(1, sizeof *f);
	if (!f) return complain(o->root, strerror(ENOMEM));
	f->root = f->cert_dir = -1;
	pthread_mutex_init(&f->mutex, NULL);
	int result = open_all(o, f);
	struct walk walk = {0};
	if (result == 0) walk_all(f, &walk);
	if (result == 0 && !walk.files && !walk.refused && o->https == HTTPS_ON) {
		fprintf(stderr, "gatling: no certificate: put server.pem into %s, or name one with --cert\n", o->root);
		result = -1;
	}
	if (result == 0 && (walk.files || walk.refused)) *files = f;
	else certificate_files_free(f);
	return result;
}

void certificate_files_free(struct certificate_files *f) {
	if (!f) return;
	for (unsigned i = 0; i < CERTS_MAX; i++) {
		if (f->cert[i].shown && f->cert[i].directory != -1) close(f->cert[i].directory);
		if (f->key[i].shown && f->key[i].directory != -1) close(f->key[i].directory);
		free(f->cert[i].shown);
		free(f->key[i].shown);
	}
	if (f->root != -1) close(f->root);
	if (f->cert_dir != -1) close(f->cert_dir);
	free(f->client_ca);
	certificates_release(f->current);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}

/* Loads everything; says what is wrong unless it has been said. */
static int load(struct certificate_files *f) {
	struct walk walk = {.set = certificates_new(f->client_ca), .last = f->current, .silent = f->refused == f->seen};
	if (!walk.set) return -1;
	walk_all(f, &walk);
	if (!walk.added && !walk.refused && !walk.silent)
		fputs("gatling: the certificates are gone; the last ones stay in use\n", stderr);
	f->refused = walk.refused || !walk.added ? f->seen : 0;
	f->tried = 0;
	if (stopped(&walk) || !walk.added || certificates_seal(walk.set) == -1) {
		certificates_release(walk.set);
		return -1;
	}
	pthread_mutex_lock(&f->mutex);
	struct certificates *last = f->current;
	f->current = walk.set;
	pthread_mutex_unlock(&f->mutex);
	certificates_release(last);
	f->loaded = f->seen;
	return 0;
}

int certificate_files_load(struct certificate_files *f) {
	struct walk walk = {0};
	walk_all(f, &walk);
	f->seen = walk.hash;
	return load(f);
}

bool certificate_files_refresh(struct certificate_files *f) {
	struct walk walk = {0};
	walk_all(f, &walk);
	bool settled = walk.hash == f->seen;
	f->seen = walk.hash;
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
