/* site.c - see site.h. A direct-mapped table of authorities as they are asked for: one that hashes to a taken place
 * takes it over, so that no number of invented hosts costs memory. */
#include "gatling/site.h"

#include <stdlib.h>

#include "gatling/hash.h"
#include "gatling/owfat.h"

struct site {
	int64_t checked_ms;
	uint16_t asked_length, prefix_length, port;
	bool used, found;
	char asked[AUTHORITY_MAX];
	char prefix[SITE_PREFIX_MAX];
};

struct sites {
	const struct cache *cache;
	enum vhosts vhosts;
	struct site site[SITES_MAX];
};

struct sites *sites_new(const struct cache *cache, enum vhosts vhosts) {
	struct sites *s = calloc(1, sizeof *s);
	if (!s) return NULL;
	s->cache = cache;
	s->vhosts = vhosts;
	return s;
}

void sites_free(struct sites *s) { free(s); }

/* Whether the directory exists; then it becomes the prefix. */
static bool try_directory(const struct sites *s, struct site *site, const char *name, size_t length) {
	char path[SITE_PREFIX_MAX + 1];
	struct stat st;
	memcpy(path, name, length);
	path[length] = '\0';
	if (cache_stat(s->cache, path, &st) == -1 || !S_ISDIR(st.st_mode)) return false;
	memcpy(site->prefix, path, length);
	site->prefix[length] = '/';
	site->prefix_length = (uint16_t)(length + 1);
	return true;
}

static void look(const struct sites *s, struct site *site) {
	char name[SITE_PREFIX_MAX]; /* "host:port" */
	size_t host_length = host_name((struct slice){.at = site->asked, .length = site->asked_length}, name);
	size_t length = host_length;
	name[length++] = ':';
	length += fmt_ulong(name + length, site->port);
	site->prefix_length = 0;
	site->found = try_directory(s, site, name, length) || try_directory(s, site, name, host_length) ||
				  try_directory(s, site, "default", strlen("default")) || s->vhosts == VHOSTS_TRY;
}

bool sites_find(struct sites *s, struct slice host, unsigned port, int64_t now_ms, char *prefix, size_t *length) {
	*length = 0;
	if (s->vhosts == VHOSTS_OFF) return true;
	struct site *site = &s->site[hash_octets(port, host) % SITES_MAX];
	struct slice asked = {.at = site->asked, .length = site->asked_length};
	bool same = site->used && site->port == port && slice_equal(asked, host);
	if (!same || now_ms - site->checked_ms >= SITE_CHECK_MS) {
		if (!same && host.length) memcpy(site->asked, host.at, host.length);
		site->asked_length = (uint16_t)host.length;
		site->port = (uint16_t)port;
		site->used = true;
		site->checked_ms = now_ms;
		look(s, site);
	}
	memcpy(prefix, site->prefix, site->prefix_length);
	*length = site->prefix_length;
	return site->found;
}
