/* check.c - see check.h. The functions that read the files for the server report the findings (notice.h). */
#include "gatling/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gatling/base/notice.h"
#include "gatling/files/report.h"
#include "gatling/files/site_file.h"
#include "gatling/http/coding.h"
#include "gatling/media/alternate.h"
#include "gatling/sandbox/account.h"
#include "gatling/site/site.h"
#include "gatling/tls/certificate_files.h"

enum {
	WALK_DESCRIPTORS = 32,
	NOW_MS = 1 /* the time for sites_find(), which so reads the files of each site only once */
};

/* --- sites: sites_find() reads their files --- */

static void check_site(struct sites *sites, const char *name) {
	const char *colon = strrchr(name, ':');
	const unsigned port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
	(void)sites_find(sites, slice_of(name), port, NOW_MS);
}

static int check_sites(const struct options *o, const struct tree *tree, struct basic_auth *auth) {
	const struct docroot *docroot = &tree->docroot;
	struct sites *sites =
		auth ? sites_new(tree, NULL, auth, o->site.vhosts, &o->site.upstreams, o->site.starter) : NULL;
	struct hosts hosts = {0};
	const int error = sites ? hosts_find(&hosts, docroot, o->site.vhosts) : ENOMEM;
	const char *reason = error == EACCES ? "there is no permission to read and enter it" : strerror(error);
	hosts_print(&hosts, "hosts: ");
	hosts_report(docroot, o->site.vhosts);
	if (sites) (void)sites_find(sites, (struct slice){0}, 0, NOW_MS);
	for (unsigned i = 0; i < hosts.count; i++) check_site(sites, hosts.name[i]);
	hosts_free(&hosts);
	sites_free(sites);
	return error ? notice_cannot("check", o->root, reason) : 0;
}

/* --- all files below the root --- */

/* Variables for check_file(), since nftw(3) has no argument for them. */
static struct {
	const struct docroot *docroot;
	struct basic_auth *auth;
	enum vhosts vhosts;
} walked;

/* Returns whether a name in the root is that of the directory of a host. */
static bool is_host(struct slice name) { return host_has_directory(walked.vhosts, name); }

/* Returns whether a name in path, which is "." or begins with "./", has a leading dot, except for .well-known at the
 * top of a site. */
static bool is_hidden(const char *path) {
	static const char known[] = "/.well-known";
	const char *dot = strstr(path, "/."), *first = strchr(path, '/');
	if (!dot) return false;
	const char *end = dot + sizeof known - 1;
	const struct slice top = {.at = first + 1, .length = (size_t)(dot - first) - (dot > first)};
	bool of_site = dot == first || is_host(top);
	if (!of_site || strncmp(dot, known, sizeof known - 1) != 0 || (*end && *end != '/')) return true;
	return strstr(end, "/.");
}

/* Reports a precompressed copy that is older than its original. */
static void check_original(const char *path, const struct stat *st) {
	char original[PATH_MAX];
	struct file_version version = file_version_of(st);
	struct stat original_st;
	const struct slice whole = slice_of(path), name = coding_original(whole);
	if (name.length == whole.length) return;
	snprintf(original, sizeof original, "%.*s", (int)name.length, name.at);
	if (docroot_stat(walked.docroot, original, &original_st) == -1 || !S_ISREG(original_st.st_mode)) return;
	struct file_version original_version = file_version_of(&original_st);
	if (file_version_older(&version, &original_version)) report_outdated(path, original, &original_version);
}

/* Reports the alternates of a file that are older. */
static void check_alternates(const char *path, const struct stat *st) {
	char alternate[PATH_MAX];
	const struct file_version original = file_version_of(st);
	struct slice stem;
	struct stat other;
	const unsigned may = alternates_of(slice_of(path), &stem);
	for (int i = 0; i < ALTERNATES; i++) {
		if (!(may >> i & 1)) continue;
		snprintf(alternate, sizeof alternate, "%.*s%s", (int)stem.length, stem.at, alternate_suffix[i].at);
		if (docroot_stat(walked.docroot, alternate, &other) == -1 || !S_ISREG(other.st_mode)) continue;
		const struct file_version version = file_version_of(&other);
		if (alternate_outdated((enum alternate)i, &version, &original)) report_outdated(alternate, path, &original);
	}
}

/* Reports a symbolic link whose target does not exist, unless the target is a URL. */
static void check_link(const char *path) {
	char target[PATH_MAX];
	if (report_link(walked.docroot, path)) return;
	if (docroot_readlink(walked.docroot, path, target, sizeof target) && !strstr(target, "://"))
		notice(0, "%s: a symbolic link to %s, which does not exist", path, target);
}

/* Reports a symbolic link that a walk did not follow, if its target does not exist, if it is part of a loop, or if
 * --symlinks inside forbids it. */
static void check_unfollowed(const char *path) {
	struct stat st;
	if (docroot_stat(walked.docroot, path, &st) == 0) return;
	const int error = errno;
	if (error == ENOENT) check_link(path);
	else if (error == ELOOP && report_link(walked.docroot, path)) return;
	else if (error == ELOOP) notice(0, "%s: a symbolic link that leads to itself, or through too many others", path);
	else if (error == EXDEV) notice(0, "%s: a symbolic link that --symlinks inside does not follow", path);
}

/* Returns whether an entry of the root whose name fits() is this directory, or a link to it. */
static bool is_in_root(const struct stat *directory, bool (*fits)(struct slice name)) {
	struct stat st;
	bool found = false;
	DIR *root = opendir(".");
	for (const struct dirent *entry; root && !found && (entry = readdir(root));)
		found = *entry->d_name != '.' && fits(slice_of(entry->d_name)) &&
				docroot_stat(walked.docroot, entry->d_name, &st) == 0 && st.st_dev == directory->st_dev &&
				st.st_ino == directory->st_ino;
	if (root) closedir(root);
	return found;
}

static bool any_name(struct slice name) { return name.length; }

/* Returns whether a name in the root would be that of the directory of a host with -v. */
static bool is_host_with_v(struct slice name) { return host_has_directory(VHOSTS_ONLY, name); }

/* Returns whether a directory, at that level below the root, has a name in the root that fits(). */
static bool has_name(const char *path, int level, const struct stat *st, bool (*fits)(struct slice name)) {
	return (level == 1 && fits(slice_of(path + 2))) || is_in_root(st, fits);
}

/* Reports a file of rules, or of passwords for a whole site, in a directory where it has no effect. */
static void check_place(const char *at, const struct FTW *where, bool passwords) {
	char directory[PATH_MAX];
	struct stat st;
	const char *dot = strstr(at, "/.");
	if (dot && dot + 1 < at + where->base) return; /* nothing is served there */
	snprintf(directory, sizeof directory, "%.*s", where->base - 1, at);
	if (docroot_stat(walked.docroot, directory, &st) == -1) return;
	if (where->level == 1 && walked.vhosts != VHOSTS_ONLY) return;
	/* passwords take effect in every directory in the root, whatever its name: see basic_auth_guard() */
	if (has_name(directory, where->level - 1, &st, passwords ? any_name : is_host)) return;
	if (walked.vhosts == VHOSTS_TRY && !passwords && has_name(directory, where->level - 1, &st, is_host_with_v))
		notice(0, "%s: only with -v is this the directory of a site, so the file has no effect", at + 2);
	else notice(0, "%s: this is not the directory of a site, so the file has no effect", at + 2);
}

/* Reports a directory that cannot be read. */
static void check_directory(const char *path) {
	char inside[PATH_MAX];
	if ((size_t)snprintf(inside, sizeof inside, "%s/.", path) < sizeof inside) report_unserved(walked.docroot, inside);
}

static int check_file(const char *at, const struct stat *st, int type, struct FTW *where) {
	const char *name = at + where->base, *path = at + (at[1] ? 2 : 0);
	enum site_file file = 0;
	while (file < SITE_FILES && strcmp(name, site_file_name[file]) != 0) file++;
	const bool passwords = file == SITE_PASSWORDS, rules = file < SITE_FILES && !passwords;
	/* the passwords of a directory that is not a site take effect there, too: see basic_auth_guard() */
	if ((passwords && where->level == 2) || strcmp(name, ".htaccess") == 0) {
		struct guard guard = basic_auth_of_files(walked.auth, path, NULL);
		guard_release(&guard);
	}
	if (type == FTW_F && (rules || passwords)) check_place(at, where, passwords);
	if (is_hidden(at) || rules) return 0;
	const bool of_site = type == FTW_D && where->level == 1 && walked.vhosts == VHOSTS_ONLY;
	if (of_site && st->st_mode & S_IXOTH && !is_host(slice_of(name))) /* without o+x it may be lost+found */
		notice(0, "%s: no host has this name, so nothing in it is served; names of hosts are in lower case", path);
	if (type == FTW_SLN) check_link(path);
	if (type == FTW_SL) check_unfollowed(path);
	if (type == FTW_DNR) check_directory(path);
	if (type == FTW_F || type == FTW_NS) report_unserved(walked.docroot, path);
	if (type == FTW_F) check_original(path, st);
	if (type == FTW_F) check_alternates(path, st);
	return 0;
}

static int check_files(const struct options *o, const struct docroot *docroot, struct basic_auth *auth) {
	walked.docroot = docroot;
	walked.auth = auth;
	walked.vhosts = o->site.vhosts;
	/* without this flag links are followed, as they are when files are served */
	int flags = docroot->symlinks_inside ? FTW_PHYS : 0;
	bool done = auth && nftw(".", check_file, WALK_DESCRIPTORS, flags) == 0;
	if (!done && auth && errno == ELOOP) { /* a loop of links ends a walk that follows them */
		done = nftw(".", check_file, WALK_DESCRIPTORS, FTW_PHYS) == 0;
		notice(0, "symbolic links lead in a circle: until that is mended, not all that links lead to is checked");
	}
	return done ? 0 : notice_cannot("check", o->root, strerror(errno));
}

/* --- certificates --- */

static int check_certificates(const struct options *o) {
	struct certificate_files *files = NULL;
	struct broker *broker = broker_new();
	int result = -1;
	if (!broker) return notice_cannot("check", "certificates", strerror(ENOMEM));
	if (certificate_files_new(&o->tls, o->root, broker, &files) == 0) {
		if (broker_start(broker, o->sandbox, NULL) == -1) (void)notice_cannot("check", "certificates", strerror(errno));
		else result = 0;
	}
	if (result == 0) certificate_files_find(&o->tls, &files);
	if (result == 0 && files) result = certificate_files_load(files);
	certificate_files_free(files);
	broker_free(broker);
	return result;
}

int check_enter(const struct options *o, struct docroot *docroot, char *directory) {
	struct account account;
	if (geteuid() != 0) return 0;
	const char *unknown = o->user ? account_find(o->user, &account) : NULL;
	if (unknown) return notice_cannot("become user", o->user, unknown);
	docroot->outside = getcwd(directory, PATH_MAX);
	if (account_chroot() == -1) return notice_cannot("chroot to", o->root, strerror(errno));
	const char *wrong = o->user ? account_become(&account) : NULL;
	return wrong ? notice_cannot("become user", o->user, wrong) : 0;
}

int check(const struct options *o, bool wrong) {
	struct tree tree = {.docroot = {.root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
									.symlinks_inside = o->site.symlinks_inside}};
	const int root = tree.docroot.root;
	char directory[PATH_MAX];
	char *path = realpath(o->root, NULL);
	notice_check();
	int result = root == -1 ? -1 : check_certificates(o);
	if (root == -1 || fchdir(root) == -1) {
		(void)notice_cannot("check", o->root, strerror(errno));
		return 1;
	}
	if (check_enter(o, &tree.docroot, directory) == -1) return 1;
	struct basic_auth *auth = basic_auth_new(&tree, NULL, NULL);
	if (auth && path) basic_auth_set_root(auth, path, o->root);
	if (check_sites(o, &tree, auth) == -1 || check_files(o, &tree.docroot, auth) == -1) result = -1;
	basic_auth_free(auth);
	free(path);
	close(root);
	if (wrong) result = -1;
	if (result == 0 && !notices()) puts("no mistakes");
	if (fflush(stdout) != 0) result = notice_cannot("write to stdout", NULL, strerror(errno));
	return result == -1 || notices() > 0;
}
