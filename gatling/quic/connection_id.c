/* connection_id.c - see endpoint.h: connection IDs, and the table of them. */
#include <openssl/rand.h>
#include <pthread.h>
#include <stdlib.h>

#include "gatling/quic/endpoint.h"

/* --- the table --- */

bool quic_table_open(struct quic_table *t) {
	t->list = calloc(QUIC_TABLE, sizeof(void *));
	t->lists = QUIC_TABLE;
	return t->list && RAND_bytes((unsigned char *)t->seed, sizeof t->seed) == 1;
}

void quic_table_close(struct quic_table *t) { free(t->list); }

/* The IDs that clients choose must not fall into one list: they do not know the seeds. */
static size_t hash(const struct quic_table *t, const uint8_t *id, size_t length) {
	uint64_t h = t->seed[0] ^ length;
	while (length) {
		const size_t n = length < 8 ? length : 8;
		uint64_t word = 0;
		memcpy(&word, id, n);
		const unsigned __int128 product = (unsigned __int128)(h ^ word) * (t->seed[1] | 1);
		h = (uint64_t)product ^ (uint64_t)(product >> 64);
		id += n;
		length -= n;
	}
	return (size_t)(h ^ h >> 32) & (t->lists - 1);
}

static struct quic_id **find(const struct quic_table *t, const uint8_t *id, size_t length) {
	struct quic_id **at = &t->list[hash(t, id, length)];
	while (*at && ((*at)->cid.datalen != length || memcmp((*at)->cid.data, id, length) != 0)) at = &(*at)->next;
	return at;
}

struct quic_connection *quic_table_find(const struct quic_table *t, const uint8_t *id, size_t length) {
	const struct quic_id *found = *find(t, id, length);
	return found ? found->connection : NULL;
}

/* Doubles the lists; without memory, they grow longer. */
static void grow(struct quic_table *t) {
	struct quic_table old = *t;
	struct quic_id **list = calloc(2 * old.lists, sizeof(void *));
	if (!list) return;
	t->list = list;
	t->lists = 2 * old.lists;
	for (size_t i = 0; i < old.lists; i++) {
		for (struct quic_id *id = old.list[i], *next; id; id = next) {
			struct quic_id **at = &list[hash(t, id->cid.data, id->cid.datalen)];
			next = id->next;
			id->next = *at;
			*at = id;
		}
	}
	free(old.list);
}

bool quic_table_add(struct quic_table *t, const ngtcp2_cid *cid, struct quic_connection *connection) {
	if (t->count >= t->lists) grow(t);
	struct quic_id **at = find(t, cid->data, cid->datalen);
	struct quic_id *id = *at ? NULL : malloc(sizeof *id);
	if (!id) return false; /* or another connection has it, which only a client's own choice can cause */
	*id = (struct quic_id){.sibling = connection->ids, .connection = connection, .cid = *cid};
	*at = connection->ids = id;
	t->count++;
	return true;
}

static void remove_id(struct quic_table *t, struct quic_id *id) {
	struct quic_id **at = find(t, id->cid.data, id->cid.datalen);
	*at = id->next;
	t->count--;
	free(id);
}

void quic_table_remove(struct quic_table *t, const ngtcp2_cid *cid, struct quic_connection *c) {
	struct quic_id **at = &c->ids, *id;
	while (*at && !ngtcp2_cid_eq(&(*at)->cid, cid)) at = &(*at)->sibling;
	if (!(id = *at)) return;
	*at = id->sibling;
	remove_id(t, id);
}

void quic_table_remove_all(struct quic_table *t, struct quic_connection *c) {
	for (struct quic_id *id; (id = c->ids);) {
		c->ids = id->sibling;
		remove_id(t, id);
	}
}

/* --- IDs --- */

/* The first byte says which worker has the connection, so that the kernel can tell; see quic_open_socket(). */
bool quic_id_make(const struct quic *e, ngtcp2_cid *cid) {
	const unsigned part = 256 / e->workers;
	cid->datalen = QUIC_ID_LENGTH;
	if (RAND_bytes(cid->data, QUIC_ID_LENGTH) != 1) return false;
	cid->data[0] = (uint8_t)(cid->data[0] % part * e->workers + e->worker);
	return true;
}

static uint8_t secret[QUIC_SECRET];
static bool has_secret;

static void make_secret(void) { has_secret = RAND_bytes(secret, sizeof secret) == 1; }

const uint8_t *quic_secret(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	(void)pthread_once(&once, make_secret);
	return has_secret ? secret : NULL;
}
