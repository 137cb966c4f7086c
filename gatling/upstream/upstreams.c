/* upstreams.c - see upstreams.h. */
#include "gatling/upstream/upstreams.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "gatling/base/cookie.h"
#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/status/upstream_counts.h"

enum { CANDIDATES_MAX = 32 }; /* a bit for each in `tried` */

struct upstream {
	struct upstream_address address;
	char text[UPSTREAM_TEXT_MAX]; /* the same, see upstream_format() */
	struct upstream_counts *counts;
	unsigned active, idle; /* connections */
	uint64_t site;         /* the hash of the site that has the place: the one whose request came when there was none */
	int64_t rests_until_ms;
	LIST_HEAD(, upstream_link) kept; /* the most recently used first */
	bool tls;
	SSL_SESSION *session; /* of TLS, to be continued; or NULL */
};

struct upstreams {
	struct upstreams_options options;
	char *spare; /* a buffer, or NULL */
	struct upstream_writers writers;
	unsigned connections;
	LIST_HEAD(, upstream_link) used;
	uint32_t turn;       /* determines the address of a target to begin with */
	uint64_t first_site; /* the hash of the first one that has asked, */
	bool any_site;       /* if one has, */
	bool several_sites;  /* and whether others have, too */
	unsigned count;
	struct upstream at[UPSTREAMS_MAX];
};

struct upstreams *upstreams_new(const struct upstreams_options *options) {
	struct upstreams *u = calloc(1, sizeof *u);
	if (!u) return NULL;
	u->options = *options;
	LIST_INIT(&u->used);
	return u;
}

const struct upstreams_options *upstreams_options(const struct upstreams *u) { return &u->options; }

bool upstreams_refuse_body(const struct upstream_limits *limits, uint64_t bytes) {
	static notice_time next;
	if (bytes <= limits->body_max) return false;
	if (notice_due(&next))
		notice_line(LEVEL_WARNING,
					"refused a request with more than %" PRIu64 " bytes of content for an upstream: "
					"body=SIZE of --limit, or in the file _limits, allows more",
					limits->body_max);
	return true;
}

static void close_link(struct upstreams *u, struct upstream_link *link) {
	if (link->tls && !link->proxied) tls_client_shut(link->tls);
	if (link->tls) *u->options.tls_memory -= TLS_CLIENT_MEMORY;
	tls_client_free(link->tls);
	io_close(u->options.loop, link->fd);
	u->connections--;
	free(link);
}

/* Counts connections that have become active, and idle. */
static void add(struct upstream *to, int active, int idle) {
	to->active += (unsigned)active;
	to->idle += (unsigned)idle;
	upstream_count_links(to->counts, active, idle);
}

/* Closes an idle connection that is no longer in the list of its address. */
static void close_idle(struct upstreams *u, struct upstream_link *link) {
	add(link->to, 0, -1);
	close_link(u, link);
}

/* Takes the first idle connection off the list of an address. Returns it, or NULL. It still counts as idle. */
static struct upstream_link *next_idle(struct upstream *to) {
	struct upstream_link *link = LIST_FIRST(&to->kept);
	if (!link) return NULL;
	LIST_REMOVE(link, idle);
	return link;
}

void upstreams_idle_timed_out(struct upstreams *u, struct upstream_link *link) {
	LIST_REMOVE(link, idle);
	close_idle(u, link);
}

/* Returns whether an idle connection has nothing to read. */
static bool is_quiet(const struct upstream_link *link) {
	char octet;
	return upstream_link_read(link, &octet, 1) == -1 && errno == EAGAIN;
}

/* Closes the connection, unless there is nothing to read: readiness is only a hint. */
void upstreams_idle_readable(struct upstreams *u, struct upstream_link *link) {
	if (!is_quiet(link)) upstreams_idle_timed_out(u, link);
}

/* Closes the idle connections to an address, and forgets its session. */
static void forget(struct upstreams *u, struct upstream *to) {
	for (struct upstream_link *link; (link = next_idle(to));) close_idle(u, link);
	SSL_SESSION_free(to->session);
	to->session = NULL;
}

void upstreams_free(struct upstreams *u) {
	if (!u) return;
	for (unsigned i = 0; i < u->count; i++) forget(u, &u->at[i]);
	free(u->spare);
	upstream_writers_free(&u->writers);
	free(u);
}

struct upstream_writers *upstreams_writers(struct upstreams *u) {
	return &u->writers;
}

char *upstreams_take_buffer(struct upstreams *u) {
	char *buffer = u->spare ? u->spare : malloc(UPSTREAM_BUFFER);
	u->spare = NULL;
	return buffer;
}

void upstreams_return_buffer(struct upstreams *u, char *buffer) {
#ifdef __SANITIZE_ADDRESS__ /* so that it notices a later use */
	(void)u;
	free(buffer);
#else
	free(u->spare);
	u->spare = buffer;
#endif
}

/* --- addresses --- */

/* An address of a target, or one that was found for a name in it. */
struct upstream_candidate {
	const struct upstream_address *of;
	struct peer at;
	bool tls;
};

static bool is_of(const struct upstream *one, const struct upstream_candidate *c) {
	const struct upstream_address *a = &one->address, *b = c->of;
	return a->port == b->port && memcmp(&a->address, &c->at, sizeof c->at) == 0 && one->tls == c->tls &&
		   !strcmp(a->path, b->path) && !strcmp(a->host, b->host);
}

static struct upstream_address address_of(const struct upstream_candidate *c) {
	struct upstream_address address = *c->of;
	address.address = c->at;
	return address;
}

/* Returns whether a site has its share of the places. An owner may write any number of addresses into rules, and have
 * all of them hang: the last place is never for a site that has others. */
static bool has_share_of_places(const struct upstreams *u, uint64_t site) {
	unsigned own = 0, others = 0;
	for (unsigned i = 0; i < u->count; i++) {
		if (!u->at[i].active) continue;
		if (u->at[i].site == site) own++;
		else others++;
	}
	return own >= (UPSTREAMS_MAX - others + 1) / 2;
}

/* Reports that an address gets no place, since others have them all. */
static void tell_no_place(const struct upstream_address *address) {
	static notice_time next;
	char text[UPSTREAM_TEXT_MAX];
	if (!notice_due(&next)) return;
	upstream_format(text, address);
	notice_line(LEVEL_WARNING, "no request is passed on to %s: %d other addresses have requests under way", text,
				UPSTREAMS_MAX);
}

/* Reports that an address gets no place, since its site has its share of them. */
static void tell_no_share(const struct upstream_address *address, struct slice site) {
	static notice_time next;
	char text[UPSTREAM_TEXT_MAX];
	if (!notice_due(&next)) return;
	upstream_format(text, address);
	if (slice_ends(site, SLICE("/"))) site.length--;
	if (!site.length) site = SLICE("at the root");
	notice_line(LEVEL_WARNING,
				"no request of the site %.*s is passed on to %s: of the %d addresses it has half of those that other "
				"sites leave, and waits for answers from all of them",
				(int)site.length, site.at, text, UPSTREAMS_MAX);
}

/* Returns the entry of an address. A new one may replace an entry without requests, but not `kept`. Returns NULL, which
 * is reported, if there is none, or the site has its share of them. */
static struct upstream *find_upstream(struct upstreams *u, const struct upstream_candidate *c,
									  const struct upstream_asker *asker, const struct upstream *kept) {
	struct upstream *place = u->count < UPSTREAMS_MAX ? &u->at[u->count] : NULL, *found = NULL;
	for (unsigned i = 0; i < u->count && !found; i++) {
		struct upstream *one = &u->at[i];
		if (is_of(one, c)) found = one;
		else if (!one->active && one != kept && (!place || one->idle < place->idle)) place = one;
	}
	if (found && found->active) return found;
	const struct upstream_address address = address_of(c);
	if (!found && !place) {
		tell_no_place(&address);
		return NULL;
	}
	if (has_share_of_places(u, asker->site_hash)) {
		tell_no_share(&address, asker->site);
		return NULL;
	}
	if (found) return found;
	forget(u, place);
	u->count += place == &u->at[u->count];
	*place = (struct upstream){.address = address, .tls = c->tls};
	upstream_format(place->text, &address);
	place->counts = upstream_counts_of(place->text);
	LIST_INIT(&place->kept);
	return place;
}

/* Reports that a host has no address. */
static void tell_unresolved(const char *host, const char *why) {
	static notice_time next;
	if (notice_due(&next)) notice_line(LEVEL_WARNING, "cannot look up the upstream %s: %s", host, why);
}

/* Adds the addresses of a host to at[count], as long as there are places. Returns how many there are then. */
static unsigned add_named(struct upstreams *u, const struct upstream_target *t, const struct upstream_address *a,
						  struct upstream_candidate *at, unsigned count) {
	struct peer found[RESOLVED_MAX];
	const char *why = "it has only addresses of this machine or its links, which --upstream ADDRESS allows";
	const unsigned n = resolver_find(u->options.shared->resolver, a->host, found, &why), before = count;
	for (unsigned i = 0; i < n && count < CANDIDATES_MAX; i++)
		if (upstreams_allow_found(u->options.shared->allowed, t, a, &found[i]))
			at[count++] = (struct upstream_candidate){.of = a, .at = found[i], .tls = t->tls};
	if (count == before) tell_unresolved(a->host, why);
	return count;
}

/* Writes the addresses of a target to at (CANDIDATES_MAX). Returns how many there are. */
static unsigned find_candidates(struct upstreams *u, const struct upstream_target *t, struct upstream_candidate *at) {
	unsigned count = 0;
	for (unsigned i = 0; i < t->count && count < CANDIDATES_MAX; i++) {
		const struct upstream_address *a = &t->at[i];
		if (a->host[0] && peer_is_unix(&a->address)) count = add_named(u, t, a, at, count);
		else at[count++] = (struct upstream_candidate){.of = a, .at = a->address, .tls = t->tls};
	}
	return count;
}

/* Returns the address to use, or NULL. *status becomes 503 if there is no room for an address. */
static struct upstream *choose(struct upstreams *u, const struct upstream_target *t, const struct upstream_asker *asker,
							   unsigned *tried, int *status) {
	struct upstream_candidate candidate[CANDIDATES_MAX];
	struct upstream *best = NULL;
	unsigned chosen = 0;
	const int64_t now_ms = io_now(u->options.loop);
	const unsigned count = find_candidates(u, t, candidate);
	u->turn = u->turn * 1664525 + 1013904223; /* Numerical Recipes; a counter would keep pace with the clients */
	const unsigned first = count ? (u->turn >> 16) % count : 0;
	for (unsigned n = 0; n < count; n++) {
		const unsigned i = (first + n) % count;
		if (*tried >> i & 1) continue;
		struct upstream *one = find_upstream(u, &candidate[i], asker, best);
		if (!one) *status = 503;
		if (!one) continue;
		bool rests = one->rests_until_ms > now_ms, best_rests = best && best->rests_until_ms > now_ms;
		bool better = rests == best_rests ? best && one->active < best->active : best_rests;
		if (best && !better) continue;
		best = one;
		chosen = i;
	}
	if (best) *tried |= 1U << chosen;
	return best;
}

/* --- connections --- */

const char *upstreams_address(const struct upstream_link *link) { return link->to->text; }

void upstreams_note_response(const struct upstream_link *link, int status, int64_t ms) {
	upstream_count_response(link->to->counts, status, ms * 1000000);
}

void upstreams_complain(const struct upstream_link *link, const char *what) {
	upstream_count(link->to->counts, UPSTREAM_FAILURES, 1);
	if (!notice_due(&link->to->counts->next_notice)) return;
	notice_line(LEVEL_WARNING, "upstream %s %s", link->to->text, what);
}

void upstreams_report(const struct upstream_link *link, struct slice line) {
	char said[NOTICE_TEXT_MAX];
	if (line.length >= sizeof said) line.length = sizeof said - 1;
	char *end = text_copy(said, line);
	*end = '\0';
	for (char *c = said; c < end; c++)
		if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
	notice_line(LEVEL_ERROR, "%s says: %s", link->to->text, said);
}

/* Returns whether an errno is not the fault of an upstream, but means that this machine lacks resources. */
static bool is_ours(int error) {
	return error == EAGAIN || error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOBUFS ||
		   error == ENOSPC;
}

/* Avoids an address for a while. */
static void rest(struct upstreams *u, struct upstream *to) {
	to->rests_until_ms = io_now(u->options.loop) + UPSTREAM_REST_MS;
}

/* Notes that an address could not be connected to, for an errno and its reason. EAGAIN on a unix socket means that its
 * queue is full (unix(7)), which does not last long. */
static void note_failed(struct upstreams *u, struct upstream *to, int error, const char *reason) {
	const bool is_full = error == EAGAIN && to->address.path[0];
	if (is_ours(error) && !is_full) return;
	upstream_count(to->counts, UPSTREAM_FAILURES, 1);
	if (!is_full) rest(u, to);
	if (!notice_due(&to->counts->next_notice)) return;
	const bool named = to->address.host[0];
	notice_line(LEVEL_WARNING, "cannot connect to the upstream %s%s%s%s: %s", to->text, named ? " (" : "",
				to->address.host, named ? ")" : "", reason);
}

/* Begins TLS, if it is an upstream of https. Returns false if memory runs out. */
static bool begin_tls(const struct upstreams *u, struct upstream_link *link) {
	struct upstream *to = link->to;
	char address[PEER_MAX];
	if (!to->tls) return true;
	upstream_link_send_at_once(link); /* the request follows the end of the handshake */
	address[peer_format(address, &to->address.address)] = '\0';
	const char *host = to->address.host[0] ? to->address.host : address;
	link->tls = tls_client_new(u->options.shared->tls, link->loop, link->fd, host, &to->session);
	if (link->tls) *u->options.tls_memory += TLS_CLIENT_MEMORY;
	return link->tls;
}

static struct upstream_link *make(struct upstreams *u, struct upstream *to, int fd) {
	struct upstream_link *link = malloc(sizeof *link);
	if (link && io_fd(u->options.loop, fd, link) == 0) {
		*link = (struct upstream_link){.kind = COOKIE_UPSTREAM, .fd = fd, .loop = u->options.loop, .to = to};
		u->connections++;
		(void)io_eagain_read(u->options.loop, fd); /* nothing comes before a request is sent */
		if (begin_tls(u, link)) return link;
		close_link(u, link);
		return NULL;
	}
	free(link);
	close(fd);
	return NULL;
}

/* Returns an idle connection on which nothing has come since its last response, or NULL. It still counts as idle. */
static struct upstream_link *take_idle(struct upstreams *u, struct upstream *to) {
	struct upstream_link *link;
	while ((link = next_idle(to)) && !is_quiet(link)) close_idle(u, link);
	return link;
}

/* Returns NULL, or the words for tell_full() if a client, or a site, has its share of the connections. Called only when
 * they run short. */
static const char *has_share_of_connections(const struct upstreams *u, const struct upstream_asker *asker) {
	const uint64_t network = peer_network(&asker->client); /* 0: on a unix socket */
	unsigned of_client = 0, of_site = 0;
	for (const struct upstream_link *link = LIST_FIRST(&u->used); link; link = LIST_NEXT(link, used)) {
		of_client += network && peer_network(&link->client) == network;
		of_site += link->site == asker->site_hash;
	}
	if (of_client > u->options.connections / UPSTREAM_CLIENT_SHARE)
		return "further requests of a client that has an eighth are";
	const bool many = u->several_sites && of_site > u->options.connections / UPSTREAM_SITE_SHARE;
	return many ? "further requests of a site that has half are" : NULL;
}

/* Returns how many connections are not idle. */
static unsigned in_use(const struct upstreams *u) {
	unsigned n = u->connections;
	for (unsigned i = 0; i < u->count; i++) n -= u->at[i].idle;
	return n;
}

/* Returns NULL if there may be another connection to an address, for which it may close an idle one; otherwise the
 * words for tell_full(). Neither an upstream that hangs nor a client nor a site can take all connections. */
static const char *lacks_room(struct upstreams *u, const struct upstream *to, const struct upstream_asker *asker) {
	const unsigned all = u->options.connections;
	if (u->count > 1 && to->active >= all - all / UPSTREAM_OTHERS) return "further requests are";
	const char *share = in_use(u) >= all - all / 4 ? has_share_of_connections(u, asker) : NULL;
	if (share) return share;
	for (unsigned i = 0; i < u->count && u->connections >= all; i++)
		if (u->at[i].idle) close_idle(u, next_idle(&u->at[i]));
	return u->connections < all ? NULL : "further requests are";
}

static void tell_full(const struct upstreams *u, const char *which) {
	static notice_time next;
	const struct upstream *most = &u->at[0];
	if (!notice_due(&next)) return;
	for (unsigned i = 1; i < u->count; i++)
		if (u->at[i].active > most->active) most = &u->at[i];
	notice_line(LEVEL_WARNING,
				"%u of the %u connections that a worker may have to upstreams wait for %s: %s answered with 503; more "
				"descriptors (ulimit -n) allow more",
				most->active, u->options.connections, most->text, which);
}

/* Notes that a site has asked for a connection. */
static void note_site(struct upstreams *u, uint64_t site) {
	if (!u->any_site) u->first_site = site;
	u->any_site = true;
	u->several_sites |= site != u->first_site;
}

struct upstream_link *upstreams_take(struct upstreams *u, const struct upstream_target *t, bool fresh,
									 const struct upstream_asker *asker, unsigned *tried, int *status) {
	struct upstream *to;
	*status = 502;
	note_site(u, asker->site_hash);
	while ((to = choose(u, t, asker, tried, status))) {
		struct upstream_link *link = fresh ? NULL : take_idle(u, to);
		const bool was_idle = link;
		const char *lack = link ? NULL : lacks_room(u, to, asker);
		if (lack) {
			tell_full(u, lack);
			*status = 503;
			continue;
		}
		if (!link) {
			int fd = upstream_connect(u->options.shared->connector, &to->address);
			int error = fd == -1 ? errno : ENOMEM;
			if (fd != -1) link = make(u, to, fd);
			else note_failed(u, to, error, upstream_connect_reason(&to->address, error));
			if (!link && is_ours(error)) *status = 503;
			if (!link) continue;
		}
		link->client = asker->client;
		link->site = asker->site_hash;
		LIST_INSERT_HEAD(&u->used, link, used);
		if (!to->active) to->site = asker->site_hash;
		add(to, 1, -was_idle);
		upstream_count(to->counts, UPSTREAM_REQUESTS, 1);
		return link;
	}
	return NULL;
}

void upstreams_return(struct upstreams *u, struct upstream_link *link, enum link_end end) {
	const struct linger at_once = {.l_onoff = 1};
	struct upstream *to = link->to;
	LIST_REMOVE(link, used);
	if (end != LINK_BROKEN) to->rests_until_ms = 0;
	link->proxied = NULL;
	link->reused = true;
	/* both sides have everything: a reset leaves no TIME_WAIT, which would keep a port of this machine for a minute */
	if (end == LINK_DONE && !to->address.path[0])
		(void)setsockopt(link->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
	const bool kept =
		end == LINK_KEPT && to->idle < UPSTREAM_IDLE_MAX && io_want(u->options.loop, link->fd, true, false) == 0;
	add(to, -1, kept);
	if (!kept) {
		close_link(u, link);
		return;
	}
	io_timeout(u->options.loop, link->fd, io_now(u->options.loop) + UPSTREAM_IDLE_MS);
	LIST_INSERT_HEAD(&to->kept, link, idle);
}

void upstreams_return_ended(struct upstreams *u, struct upstream_link *link) {
	struct upstream *to = link->to;
	upstreams_return(u, link, LINK_BROKEN);
	rest(u, to);
}

int upstreams_return_failed(struct upstreams *u, struct upstream_link *link, int error) {
	const bool is_tls = link->tls && error == EPROTO;
	note_failed(u, link->to, error,
				is_tls ? tls_client_fault(link->tls) : upstream_connect_reason(&link->to->address, error));
	LIST_REMOVE(link, used);
	add(link->to, -1, 0);
	close_link(u, link);
	return error == ETIMEDOUT ? 504 : is_ours(error) ? 503 : 502;
}
