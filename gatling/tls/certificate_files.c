/* certificate_files.c - see certificate_files.h. A walk visits all files and hashes their status (stat(2)): a new hash
 * means that something has changed. If it is given a set of certificates, it also loads them. */
#include "gatling/tls/certificate_files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gatling/base/clock.h"
#include "gatling/base/file_read.h"
#include "gatling/base/file_version.h"
#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/files/key_file.h"
#include "gatling/http/host.h"
#include "gatling/tls/pem.h"
#include "gatling/tls/tls_context.h"

enum { NAME_MAX_BYTES = 512, DAY_S = 24 * 60 * 60, CERT_DIRS = 2 };

/* A file in a place of the broker. */
struct location {
	int place;         /* -1: none */
	const char *shown; /* the path for messages; NULL: no file */
	const char *name;  /* relative to the place */
};

/* A directory and the names in it. */
struct certificate_directory {
	struct location at;
	char *names, *end; /* each with a NUL; sorted, so that the same certificate always comes first */
	struct file_version version;
	bool recent;
	int64_t again_ms; /* it is not read again before */
};

/* A certificate that a walk visits. */
struct candidate {
	struct location cert, key; /* without a key file, the key is in the file of the certificate */
	const char *host;          /* that of HOST.pem, or NULL */
	uint64_t state;            /* a hash of the status of its files */
	const char *problem;       /* why it must not be loaded, or NULL */
};

struct certificate_files {
	struct broker *broker;
	struct certificate_directory root, dir[CERT_DIRS]; /* dir: those of --cert-dir and --acme */
	struct candidate cert[CERTS_MAX];                  /* of the command line */
	unsigned certs;
	SSL_CTX *context; /* of all sets; NULL: not made yet */
	/* Hashes of the last walk, of the last one that loaded certificates, and of that after which the files have been
	 * kept from clients. */
	uint64_t seen, loaded, hidden;
	char *broken;     /* the first file that could not be used, or NULL */
	int64_t retry_ms; /* when loading is tried again; 0: there were no errors */
	int64_t again_ms; /* there is no walk before */
	time_t day;       /* on which the validity was last checked */
	pthread_mutex_t mutex;
	struct certificates *current; /* guarded by the mutex */
};

struct walk {
	struct certificate_files *files;
	struct certificates *set;       /* gets the certificates; NULL: nothing is loaded */
	uint64_t hash;                  /* of all files */
	size_t found, loadable, loaded; /* numbers of certificates */
	bool failed;
	uint64_t *inode; /* of the files that are used, for key_files_set_tls() */
	size_t inodes;
	bool incomplete;  /* there was no memory for all of them */
	bool missed;      /* not all files were seen: there was no answer, or no time */
	int64_t until_ms; /* then it is given up; 0: never */
};

static int cannot_use(const char *file, const char *why) {
	notice(0, "cannot use certificate %s: %s", file, why);
	return -1;
}

static void note_broken(struct certificate_files *f, const char *shown) {
	if (!f->broken) f->broken = strdup(shown);
}

/* --- loading --- */

/* Returns the text of a file, to be freed by the caller, or NULL with errno. */
static char *read_file(const struct certificate_files *f, const struct location *l, size_t *length) {
	return broker_read(f->broker, l->place, l->name, length);
}

/* Returns the text of a certificate and its key, to be freed by the caller, or NULL with a reason in why. */
static char *read_pem(const struct certificate_files *f, const struct candidate *c, char *why) {
	size_t unused;
	char *key = NULL, *both = NULL, *pem = read_file(f, &c->cert, &unused);
	if (!pem) snprintf(why, CERTIFICATE_ERROR, "%s", file_load_error());
	if (!pem || !c->key.shown) return pem;
	key = read_file(f, &c->key, &unused);
	if (!key || asprintf(&both, "%s\n%s", pem, key) == -1) {
		snprintf(why, CERTIFICATE_ERROR, "%s: %s", c->key.shown, file_load_error());
		both = NULL;
	}
	free(pem);
	free(key);
	return both;
}

/* Adds a certificate to the set of the walk. Returns false with a reason in why. */
static bool load_one(struct walk *w, const struct candidate *c, char *why) {
	char *pem = read_pem(w->files, c, why);
	if (!pem) return false;
	const struct certificate_source source = {
		.origin = c->cert.shown, .pem = pem, .host = c->host, .state = c->state, .last = w->files->current};
	bool added = certificates_add(w->set, &source, why) == 0;
	free(pem);
	return added;
}

/* --- walking --- */

/* Notes a file that is used, so that it is never served. inode: file_version_hash_inode(). */
static void keep_inode(struct walk *w, uint64_t inode) {
	const size_t room = w->inodes ? w->inodes : 1; /* it is full whenever that is a power of two */
	if ((w->inodes & (w->inodes - 1)) == 0) {
		uint64_t *grown = realloc(w->inode, 2 * room * sizeof *grown);
		w->incomplete |= !grown;
		if (!grown) return;
		w->inode = grown;
	}
	w->inode[w->inodes++] = inode;
}

static void keep_from_clients(struct walk *w, const struct stat *st) {
	keep_inode(w, file_version_hash_inode(st->st_dev, st->st_ino));
}

/* Adds what is seen of a file to the hash of the walk, and to *state, that of the certificate. */
static void take_seen(struct walk *w, const struct broker_seen *seen, uint64_t *state) {
	const uint64_t both[] = {(uint64_t)seen->error, seen->version};
	const struct slice key = {.at = (const char *)both, .length = sizeof both};
	w->hash = slice_hash(w->hash, key);
	*state = slice_hash(*state, key);
}

/* Does what stat(2) does, and takes what is seen. */
static int look_at(struct walk *w, const struct location *l, uint64_t *state, struct stat *st) {
	w->hash = slice_hash(w->hash, slice_of(l->name));
	if (broker_stat(w->files->broker, l->place, l->name, st) == -1) return -1;
	const struct broker_seen seen = broker_seen_of(st);
	take_seen(w, &seen, state);
	return 0;
}

/* Loads a certificate if the walk loads certificates; one whose files have not changed is in the current set. If that
 * fails, the new set keeps the certificate as it is in the current one. */
static void visit(struct walk *w, struct candidate *c) {
	char why[CERTIFICATE_ERROR];
	w->found++;
	if (!c->problem && ++w->loadable > CERTIFICATE_FILES_MAX) c->problem = "there are too many";
	if (!w->set) return;
	bool loaded =
		!c->problem && (certificates_keep(w->set, w->files->current, c->cert.shown, &c->state) || load_one(w, c, why));
	bool kept = !loaded && certificates_keep(w->set, w->files->current, c->cert.shown, NULL);
	w->loaded += loaded || kept;
	w->failed |= !loaded;
	if (loaded) return;
	note_broken(w->files, c->cert.shown);
	notice(c->state, "cannot use certificate %s: %s%s", c->cert.shown, c->problem ? c->problem : why,
		   kept ? "; the last one stays in use" : "");
}

/* Updates the names if the directory has changed. If it is gone, they are kept, so that the last good state of each
 * file stays in use. A large directory that changes all the time is read for at most a twentieth of the time. */
static void update_names(struct walk *w, struct certificate_directory *d) {
	int64_t started = clock_ms();
	struct stat st = {0};
	bool exists = broker_stat(w->files->broker, d->at.place, ".", &st) == 0;
	struct file_version now = file_version_of(&st);
	if (exists && ((!d->recent && file_version_same(&now, &d->version)) || started < d->again_ms)) return;
	size_t length;
	const bool removed = exists && st.st_nlink == 0; /* only the root; a new directory at its path is another one */
	char *names = exists && !removed ? broker_list(w->files->broker, d->at.place, &length) : NULL;
	if (!names) {
		const char *problem = removed ? "it was removed; restart gatling if there is another one" : strerror(errno);
		visit(w, &(struct candidate){.cert = d->at, .problem = problem});
		return;
	}
	free(d->names);
	d->names = names;
	d->end = names + length;
	d->version = now;
	d->recent = file_version_recent(&now);
	d->again_ms = clock_ms() + 20 * (clock_ms() - started);
}

/* Returns whether a file may hold a private key: it does, or cannot be read. */
static bool may_hold_key(const struct certificate_files *f, const struct location *l) {
	size_t length;
	char *text = read_file(f, l, &length);
	bool may = text ? key_file_has_key((struct slice){.at = text, .length = length}) : errno != ENOENT;
	free(text);
	return may;
}

/* Visits a file in the root. Files there that everybody may read are served, so such a file must not hold a private
 * key; without a key it is not used. */
static void visit_root_file(struct walk *w, const char *name, const char *host) {
	struct candidate c = {.cert = {.place = w->files->root.at.place, .shown = name, .name = name}, .host = host};
	struct stat st;
	if (look_at(w, &c.cert, &c.state, &st) == -1) {
		if (errno != EPERM) return;
		c.problem = "it is a symbolic link of neither root nor the owner of the file";
	} else if (!S_ISREG(st.st_mode)) {
		return;
	} else if (st.st_mode & S_IROTH) {
		if (!may_hold_key(w->files, &c.cert)) {
			if (!host)
				notice(c.state, "%s: no private key is in it, so it is not used: append the key, chmod o-r", name);
			return;
		}
		keep_from_clients(w, &st);
		if ((uint64_t)st.st_size > BROKER_FILE_MAX) return; /* it is no certificate, and is not served either */
		c.problem = "everybody may read the private key in it (chmod o-r)";
	} else {
		keep_from_clients(w, &st);
	}
	visit(w, &c);
}

static bool has_time(struct walk *w) {
	if (!w->until_ms || clock_ms() < w->until_ms) return true;
	notice(0, "to look at the certificates takes more than %d s: they stay as they are", CERTIFICATE_WALK_MS / 1000);
	w->missed = true;
	return false;
}

static void walk_root(struct walk *w) {
	struct certificate_directory *d = &w->files->root;
	char host[HOST_MAX + 1];
	if (!w->files->certs) visit_root_file(w, "server.pem", NULL);
	update_names(w, d);
	for (const char *file = d->names; file < d->end && has_time(w); file += strlen(file) + 1) {
		struct slice name = slice_of(file);
		if (!slice_ends(name, SLICE(".pem")) || slice_equal(name, SLICE("server.pem"))) continue;
		name.length -= strlen(".pem");
		if (name.length > HOST_MAX) continue;
		*text_copy(host, name) = '\0';
		visit_root_file(w, file, host);
	}
}

/* Visits the certificate of a name, whose files have been seen. */
static void visit_pair(struct walk *w, const struct certificate_directory *d, const char *name,
					   const struct broker_seen *seen) {
	char cert[PATH_MAX + NAME_MAX_BYTES], key[PATH_MAX + NAME_MAX_BYTES];
	const size_t length = strlen(d->at.shown) + 1;
	struct candidate c = {.cert = {.place = d->at.place, .shown = cert, .name = cert + length},
						  .key = {.place = d->at.place, .shown = key, .name = key + length}};
	w->hash = slice_hash(w->hash, slice_of(name));
	for (int i = 0; i < BROKER_PAIR; i++) {
		take_seen(w, &seen[i], &c.state);
		if (!seen[i].error) keep_inode(w, seen[i].inode);
	}
	if (seen->error == ENOTDIR) return;
	if (w->set) {
		snprintf(cert, sizeof cert, "%s/%s/fullchain.pem", d->at.shown, name);
		snprintf(key, sizeof key, "%s/%s/privkey.pem", d->at.shown, name);
	}
	visit(w, &c);
}

/* Looks at a file alone. */
static struct broker_seen look_alone(const struct certificate_files *f, int place, const char *name, const char *file) {
	char path[PATH_MAX + NAME_MAX_BYTES];
	struct stat st;
	snprintf(path, sizeof path, "%s/%s", name, file);
	if (broker_stat(f->broker, place, path, &st) == -1) return (struct broker_seen){.error = errno};
	return broker_seen_of(&st);
}

/* Looks at the files of a directory, at many with one request; alone at those that the broker has not seen so. */
static void walk_cert_dir(struct walk *w, struct certificate_directory *d) {
	const struct certificate_files *f = w->files;
	const int place = d->at.place;
	struct broker_seen *seen = NULL;
	size_t names = 0, i = 0; /* those in seen, and of them the next one */
	unsigned first = 0;
	bool asks = true;
	update_names(w, d);
	for (const char *name = d->names; name < d->end && has_time(w); name += strlen(name) + 1, i++, first++) {
		if (asks && i == names) {
			free(seen);
			i = 0;
			asks = (seen = broker_look(f->broker, place, first, &names)) && names;
			if (!asks) names = 0;
		}
		struct broker_seen alone[BROKER_PAIR], *pair = i < names ? &seen[i * BROKER_PAIR] : NULL;
		if (!pair || pair->name != broker_name_hash(name)) {
			alone[0] = look_alone(f, place, name, "fullchain.pem");
			alone[1] = look_alone(f, place, name, "privkey.pem");
			pair = alone;
		}
		visit_pair(w, d, name, pair);
	}
	free(seen);
}

static struct walk walk(struct certificate_files *f, struct certificates *set) {
	struct walk w = {.files = f, .set = set, .until_ms = f->current ? clock_ms() + CERTIFICATE_WALK_MS : 0};
	const unsigned missed = broker_missed(f->broker);
	for (unsigned i = 0; i < f->certs; i++) {
		struct candidate c = f->cert[i];
		struct stat st;
		if (look_at(&w, &c.cert, &c.state, &st) == 0) keep_from_clients(&w, &st);
		if (c.key.shown && look_at(&w, &c.key, &c.state, &st) == 0) keep_from_clients(&w, &st);
		visit(&w, &c);
	}
	if (f->root.at.place != -1) walk_root(&w);
	for (int i = 0; i < CERT_DIRS; i++)
		if (f->dir[i].at.place != -1) walk_cert_dir(&w, &f->dir[i]);
	w.missed |= broker_missed(f->broker) != missed;
	/* a walk that has not seen all files leaves those of the last one */
	if (w.incomplete || w.missed || w.hash == f->hidden) {
		free(w.inode);
	} else {
		key_files_set_tls(w.inode, w.inodes);
		f->hidden = w.hash;
	}
	w.inode = NULL;
	return w;
}

/* --- the current set --- */

static void report_daily(const char *origin, const char *what) {
	notice((uint64_t)time(NULL) / DAY_S, "%s: %s", origin, what);
}

/* Replaces the current set with a new one. Returns -1 if memory runs out, or there is nothing to replace it with. */
static int load(struct certificate_files *f, struct walk *w) {
	struct certificates *last = f->current, *set = certificates_new(f->context);
	if (!set) return -1;
	*w = walk(f, set);
	if (w->missed && last) {
		certificates_release(set);
		return -1;
	}
	if (!w->loaded && last && !certificates_empty(last))
		notice(w->hash, "the certificates are gone; the last ones stay in use");
	f->loaded = w->hash;
	bool usable = (w->loaded || !last) && certificates_seal(set) == 0;
	f->retry_ms = w->failed || !w->loaded || !usable ? clock_ms() + CERTIFICATE_RETRY_S * 1000 : 0;
	if (!usable) {
		certificates_release(set);
		return -1;
	}
	pthread_mutex_lock(&f->mutex);
	f->current = set;
	pthread_mutex_unlock(&f->mutex);
	certificates_release(last);
	certificates_report(set, report_daily);
	return 0;
}

int certificate_files_load(struct certificate_files *f) {
	struct walk w;
	if (!f->context) f->context = tls_context_new(NULL);
	if (!f->context || load(f, &w) == -1 || w.incomplete) return cannot_use(f->root.at.shown, strerror(ENOMEM));
	f->seen = w.hash;
	if (!certificates_empty(f->current)) return 0;
	if (f->dir[1].at.shown && notice_checks() && !w.found) return 0; /* the server will request one */
	if (f->certs || w.found) notice(0, "no certificate that can be used, so no HTTPS yet");
	else if (f->dir[1].at.shown) notice(0, "no certificate, so no HTTPS yet: the authority will be asked");
	else if (f->dir[0].at.shown)
		notice(0, "no certificate in %s, so no HTTPS yet: put NAME/fullchain.pem and NAME/privkey.pem there",
			   f->dir[0].at.shown);
	else
		notice(0, "no certificate, so no HTTPS yet: put server.pem, with its key, into %s, or name one with --cert",
			   f->root.at.shown);
	return 0;
}

bool certificate_files_refresh(struct certificate_files *f) {
	const int64_t started_ms = clock_ms();
	if (started_ms < f->again_ms || broker_is_late(f->broker)) return false;
	struct walk w = walk(f, NULL);
	if (w.missed) return false;
	const int64_t pause_ms = CERTIFICATE_CHECK_PART * (clock_ms() - started_ms);
	f->again_ms = clock_ms() + (pause_ms < CERTIFICATE_PAUSE_MS ? pause_ms : CERTIFICATE_PAUSE_MS);
	bool settled = w.hash == f->seen;
	f->seen = w.hash;
	time_t day = time(NULL) / DAY_S;
	if (day != f->day) certificates_report(f->current, report_daily);
	f->day = day;
	/* an error may be temporary: a certificate that becomes valid tomorrow, or a lack of descriptors */
	const bool changed = w.hash != f->loaded || certificates_outdated(f->current);
	return settled && (changed || (f->retry_ms && clock_ms() >= f->retry_ms)) && load(f, &w) == 0;
}

const char *certificate_files_broken(const struct certificate_files *f) { return f->broken; }

struct certificates *certificate_files_current(struct certificate_files *f) {
	pthread_mutex_lock(&f->mutex);
	struct certificates *current = f->current;
	certificates_retain(current);
	pthread_mutex_unlock(&f->mutex);
	return current;
}

/* --- the command line --- */

static int add_place(struct broker *broker, struct location *l, const char *path, enum broker_rule rule) {
	l->shown = path;
	l->place = broker_add(broker, path, rule, &l->name);
	return l->place;
}

/* Adds a certificate and its key, if their directories exist. */
static void add_pair(struct certificate_files *f, const char *cert, const char *key) {
	struct candidate *c = &f->cert[f->certs];
	*c = (struct candidate){.host = NULL};
	const char *missing = NULL;
	if (add_place(f->broker, &c->cert, cert, BROKER_FILE) == -1) missing = cert;
	else if (key && add_place(f->broker, &c->key, key, BROKER_FILE) == -1) missing = key;
	if (!missing) {
		f->certs++;
		return;
	}
	(void)cannot_use(missing, strerror(errno));
	note_broken(f, missing);
}

static int read_client_ca(struct certificate_files *f, const char *file) {
	struct stat st;
	char error[PEM_ERROR], *text = file_load(open(file, O_RDONLY | O_CLOEXEC), BROKER_FILE_MAX, &st);
	if (!text) return notice_cannot("use", file, file_load_error());
	struct pem_reader *reader = pem_reader_new();
	STACK_OF(X509) *authorities = NULL;
	if (reader) authorities = pem_certificates(reader, text, INT_MAX, error);
	else snprintf(error, sizeof error, "%s", strerror(ENOMEM));
	pem_reader_free(reader);
	free(text);
	if (!authorities) return notice_cannot("use", file, error);
	f->context = tls_context_new(authorities);
	sk_X509_pop_free(authorities, X509_free);
	return f->context ? 0 : notice_cannot("use", file, strerror(ENOMEM));
}

int certificate_files_new(const struct certificate_options *o, const char *root, struct broker *broker,
						  struct certificate_files **files) {
	*files = NULL;
	if (o->https == HTTPS_OFF) return 0;
	struct certificate_files *f = calloc(1, sizeof *f);
	if (!f) return cannot_use(root, strerror(ENOMEM));
	f->broker = broker;
	pthread_mutex_init(&f->mutex, NULL);
	*files = f;
	for (unsigned i = 0; i < o->certs; i++) add_pair(f, o->cert[i], o->key[i]);
	if (add_place(broker, &f->root.at, root, BROKER_PEMS) == -1) return notice_cannot("serve", root, strerror(errno));
	const char *const dirs[CERT_DIRS] = {o->cert_dir, o->acme_dir};
	for (int i = 0; i < CERT_DIRS; i++) {
		f->dir[i].at.place = -1;
		if (!dirs[i] || add_place(broker, &f->dir[i].at, dirs[i], BROKER_PAIRS) != -1) continue;
		if (dirs[i] == o->acme_dir && errno == ENOENT) continue; /* --check may run before the first start */
		(void)cannot_use(dirs[i], strerror(errno));
		note_broken(f, dirs[i]);
	}
	return o->client_ca ? read_client_ca(f, o->client_ca) : 0;
}

void certificate_files_find(const struct certificate_options *o, struct certificate_files **files) {
	if (!*files) return;
	if (o->https == HTTPS_ON || walk(*files, NULL).found) return;
	certificate_files_free(*files);
	*files = NULL;
}

void certificate_files_free(struct certificate_files *f) {
	if (!f) return;
	free(f->root.names);
	for (int i = 0; i < CERT_DIRS; i++) free(f->dir[i].names);
	SSL_CTX_free(f->context);
	free(f->broken);
	certificates_release(f->current);
	pthread_mutex_destroy(&f->mutex);
	free(f);
}
