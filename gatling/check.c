/* check.c - see check.h. The findings are those of the modules that read the files when they serve (notice.h). */
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

#include "gatling/certificate_files.h"
#include "gatling/closed.h"
#include "gatling/coding.h"
#include "gatling/notice.h"
#include "gatling/site.h"

enum { WALK_DESCRIPTORS = 32 };

static int complain(const char *what, const char *why) {
	fprintf(stderr, "gatling: cannot check %s: %s\n", what, why);
	return -1;
}

/* --- the sites: the files are read when one is found --- */

static void look_at_site(struct sites *sites, const char *name) {
	struct slice host = {.at = name, .length = strlen(name)};
	const char *colon = strrchr(name, ':');
	if (!host_valid(host)) return;
	(void)sites_find(sites, host, colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0, 0);
}

static int look_at_sites(const struct options *o, const struct tree *tree) {
	struct guards *guards = guards_new(tree, NULL);
	struct sites *sites = guards ? sites_new(tree, guards, o->vhosts) : NULL;
	DIR *root = sites ? opendir(".") : NULL;
	if (sites) (void)sites_find(sites, (struct slice){0}, 0, 0);
	for (const struct dirent *entry; root && o->vhosts != VHOSTS_OFF && (entry = readdir(root));)
		look_at_site(sites, entry->d_name);
	int result = root ? 0 : complain(o->root, strerror(errno));
	if (root) closedir(root);
	if (sites) sites_free(sites);
	if (guards) guards_free(guards);
	return result;
}

/* --- all that is below --- */

/* nftw(3) hands nothing over. */
static struct {
	const struct tree *tree;
	struct guards *guards;
} walked;

/* path: it begins with "./", or is the root. */
static bool is_hidden(const char *path) {
	static const char known[] = "./.well-known";
	bool allowed = strncmp(path, known, sizeof known - 1) == 0;
	return strstr(path + (allowed ? sizeof known - 1 : 0), "/.");
}

/* That of a file in another coding. */
static void look_at_original(const char *path, const struct stat *st) {
	char original[PATH_MAX];
	struct identity identity = identity_of(st), its_identity;
	struct stat its;
	const struct slice whole = {.at = path, .length = strlen(path)};
	for (int i = CODING_IDENTITY + 1; i < CODINGS; i++) {
		if (!slice_ends(whole, coding_suffix[i])) continue;
		snprintf(original, sizeof original, "%.*s", (int)(whole.length - coding_suffix[i].length), path);
		if (tree_stat(walked.tree, original, &its) == -1 || !S_ISREG(its.st_mode)) continue;
		its_identity = identity_of(&its);
		if (identity_older(&identity, &its_identity)) closed_tell_older(path, original, &its_identity);
	}
}

static int look_at_file(const char *at, const struct stat *st, int type, struct FTW *where) {
	const char *name = at + where->base, *path = at + (at[1] ? 2 : 0);
	if (strcmp(name, ".htaccess") == 0) guard_release(guards_find(walked.guards, path));
	bool rules = strcmp(name, "_headers") == 0 || strcmp(name, "_redirects") == 0;
	if ((type != FTW_F && type != FTW_NS) || is_hidden(at) || rules) return 0;
	closed_tell(walked.tree, path);
	if (type == FTW_F) look_at_original(path, st);
	return 0;
}

static int look_at_files(const struct options *o, const struct tree *tree) {
	walked.tree = tree;
	if (!(walked.guards = guards_new(tree, NULL))) return complain(o->root, strerror(ENOMEM));
	int flags = tree->symlinks_inside ? FTW_PHYS : 0; /* else links are followed, as when files are served */
	int result = nftw(".", look_at_file, WALK_DESCRIPTORS, flags) == 0 ? 0 : complain(o->root, strerror(errno));
	guards_free(walked.guards);
	return result;
}

/* --- certificates --- */

static int look_at_certificates(const struct options *o) {
	struct certificate_files *files = NULL;
	struct opener *opener = opener_new();
	int result = -1;
	if (!opener) return complain("certificates", strerror(ENOMEM));
	if (certificate_files_new(o, opener, &files) == 0) {
		if (opener_start(opener) == -1) (void)complain("certificates", strerror(errno));
		else result = 0;
	}
	if (result == 0) certificate_files_find(o, &files);
	if (result == 0 && files) result = certificate_files_load(files);
	certificate_files_free(files);
	opener_free(opener);
	return result;
}

int check(const struct options *o) {
	struct tree tree = {.root = open(o->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
						.symlinks_inside = o->symlinks_inside};
	notice_check();
	int result = tree.root == -1 ? -1 : look_at_certificates(o);
	if (tree.root == -1 || fchdir(tree.root) == -1) {
		(void)complain(o->root, strerror(errno));
		return 1;
	}
	if (look_at_sites(o, &tree) == -1) result = -1;
	if (look_at_files(o, &tree) == -1) result = -1;
	close(tree.root);
	if (fflush(stdout) != 0) result = complain("to stdout", strerror(errno));
	return result == -1 || notices() > 0;
}
