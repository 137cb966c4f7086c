/* connection_id.c - see endpoint.h: connection IDs, and the table of them. */
#include <openssl/evp.h>
#include <openssl/rand.h>
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

/* An ID is a byte that says which worker has the connection, so that the kernel can tell (see quic_route()), eight
 * random bytes, and then, under a mask that these nine determine, the generation of the process and two zeros. Without
 * the key nobody can tell whether two IDs are of one connection (RFC 9000, section 5.1). */
enum { ID_RANDOM = 9, ID_CHECK = 2, MASK = 16 };
_Static_assert(ID_RANDOM + 1 + ID_CHECK == QUIC_ID_LENGTH, "the bytes of an ID");
_Static_assert(QUIC_ID_KEY == 16, "a key of AES-128");

bool quic_id_open(struct quic *e) {
	e->mask = EVP_CIPHER_CTX_new();
	return e->mask && EVP_EncryptInit_ex(e->mask, EVP_aes_128_ecb(), NULL, quic_secret(e) + QUIC_SECRET, NULL) == 1;
}

static bool find_mask(const struct quic *e, const uint8_t *id, uint8_t mask[MASK]) {
	uint8_t block[MASK] = {0};
	int n;
	memcpy(block, id, ID_RANDOM);
	return EVP_EncryptUpdate(e->mask, mask, &n, block, sizeof block) == 1;
}

bool quic_id_make(const struct quic *e, ngtcp2_cid *cid) {
	const unsigned part = 256 / e->workers;
	uint8_t *const id = cid->data, mask[MASK];
	cid->datalen = QUIC_ID_LENGTH;
	if (RAND_bytes(id, ID_RANDOM) != 1) return false;
	id[0] = (uint8_t)(id[0] % part * e->workers + e->worker);
	if (!find_mask(e, id, mask)) return false;
	memcpy(id + ID_RANDOM, mask, 1 + ID_CHECK);
	id[ID_RANDOM] ^= e->shared->generation;
	return true;
}

bool quic_id_read(const struct quic *e, const uint8_t *id, size_t length, uint8_t *generation) {
	uint8_t mask[MASK];
	if (length != QUIC_ID_LENGTH || !find_mask(e, id, mask)) return false;
	*generation = id[ID_RANDOM] ^ mask[0];
	return memcmp(&id[ID_RANDOM + 1], &mask[1], ID_CHECK) == 0;
}
