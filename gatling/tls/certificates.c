/* certificates.c - see certificates.h. */
#include "gatling/tls/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/http/host.h"
#include "gatling/tls/pem.h"

enum { CERTIFICATES_IN_FILE_MAX = 64, CERTIFICATE_NAMES_MAX = 1024, CERTIFICATE_ADDRESSES_MAX = 64 };

/* A private key with its certificate, which several sets may share. */
struct pair {
	atomic_uint references;
	char *origin;       /* the file */
	uint64_t state;     /* of it, when the pair was loaded */
	struct slice names; /* sorted, each with a NUL; malloc'd */
	X509 *certificate;
	time_t from, until; /* when it is valid; until is 0 if that is unknown */
	EVP_PKEY *key;
	STACK_OF(X509) * chain; /* the intermediate certificates, that of the issuer first */
	bool alone;             /* its issuer is not in the file */
	bool addressed;         /* the names have an address among them */
};

/* A name under which a pair is found. */
struct certified_name {
	const char *text; /* in lower case, owned by the pair; "": the default, for other names */
	unsigned rank; /* the lowest of a name comes first; it is at least the number of pairs if the pair was not valid */
	const struct pair *pair;
};

struct certificates {
	atomic_uint references;
	SSL_CTX *context;          /* without certificates: certificates_choose() gives them to each connection */
	struct pem_reader *reader; /* NULL: the set is sealed */
	struct pair **pair;        /* in the order of addition */
	unsigned pairs;
	uint64_t valid;              /* the result of validity() in certificates_seal() */
	struct certified_name *name; /* sorted; filled in by certificates_seal() */
	size_t names;
	const struct certified_name *addressed; /* of the first pair with an address; NULL: there is none */
};

void certificates_retain(struct certificates *set) { atomic_fetch_add(&set->references, 1); }

static void pair_release(struct pair *p) {
	if (atomic_fetch_sub(&p->references, 1) > 1) return;
	free(p->origin);
	free((char *)(uintptr_t)p->names.at);
	X509_free(p->certificate);
	EVP_PKEY_free(p->key);
	sk_X509_pop_free(p->chain, X509_free);
	free(p);
}

void certificates_release(struct certificates *set) {
	if (!set || atomic_fetch_sub(&set->references, 1) > 1) return;
	SSL_CTX_free(set->context);
	pem_reader_free(set->reader);
	for (unsigned i = 0; i < set->pairs; i++) pair_release(set->pair[i]);
	free(set->pair);
	free(set->name);
	free(set);
}

/* --- adding --- */

/* The labels of the keys that OpenSSL reads. */
static const char *const key_labels[] = {"PRIVATE KEY",    "ENCRYPTED PRIVATE KEY", "RSA PRIVATE KEY",
										 "EC PRIVATE KEY", "DSA PRIVATE KEY",       NULL};

static int fail(char *error, const char *what) {
	snprintf(error, CERTIFICATE_ERROR, "%s", what);
	return -1;
}

/* Returns whether the certificate is valid now and for margin_s; otherwise writes a message to error. */
static bool is_valid(const X509 *certificate, int margin_s, char *error) {
	const ASN1_TIME *from = X509_get0_notBefore(certificate), *to = X509_get0_notAfter(certificate);
	time_t soon = time(NULL) + margin_s;
	bool early = X509_cmp_current_time(from) > 0, expired = X509_cmp_current_time(to) <= 0;
	bool expires = X509_cmp_time(to, &soon) <= 0;
	struct tm tm = {0};
	char date[64] = "";
	if (!early && !expires) return true;
	if (ASN1_TIME_to_tm(early ? from : to, &tm)) strftime(date, sizeof date, "%F %T UTC", &tm);
	const char *what = early ? "is not valid yet" : expired ? "has expired" : "expires";
	snprintf(error, CERTIFICATE_ERROR, "the certificate %s: %s%s", what, date, early ? "" : ": renew it");
	return false;
}

struct name_list {
	struct slice name[CERTIFICATE_NAMES_MAX];
	size_t count, bytes;                                    /* bytes: with a NUL for each */
	char address[CERTIFICATE_ADDRESSES_MAX][PEER_HOST_MAX]; /* as text, to which names lead */
	unsigned addresses;
};

static void list_add(struct name_list *list, struct slice name) {
	bool is_server_name = name.length && name.length <= HOST_MAX && !memchr(name.at, '\0', name.length);
	if (!is_server_name || list->count == CERTIFICATE_NAMES_MAX) return;
	list->name[list->count++] = name;
	list->bytes += name.length + 1;
}

/* Adds an address: 4 or 16 bytes (RFC 5280, section 4.2.1.6). */
static void list_add_address(struct name_list *list, const ASN1_STRING *octets) {
	struct sockaddr_in in = {.sin_family = AF_INET};
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
	struct peer address;
	const size_t length = (size_t)ASN1_STRING_length(octets);
	if (list->addresses == CERTIFICATE_ADDRESSES_MAX) return;
	if (length == sizeof in.sin_addr) {
		memcpy(&in.sin_addr, ASN1_STRING_get0_data(octets), length);
		address = peer_of((const struct sockaddr *)&in);
	} else if (length == sizeof in6.sin6_addr) {
		memcpy(&in6.sin6_addr, ASN1_STRING_get0_data(octets), length);
		address = peer_of((const struct sockaddr *)&in6);
	} else {
		return;
	}
	char *text = list->address[list->addresses++];
	list_add(list, (struct slice){.at = text, .length = peer_format_host(text, &address)});
}

static int by_letters(const void *a, const void *b) {
	const struct slice *x = a, *y = b;
	int order = strncasecmp(x->at, y->at, x->length < y->length ? x->length : y->length);
	return order ? order : (x->length > y->length) - (x->length < y->length);
}

/* Returns the server names and addresses of a certificate, and the host, as in struct pair; or an absent slice if they
 * cannot be read. */
static struct slice names_of(const X509 *certificate, const char *host, bool *addressed) {
	int found;
	GENERAL_NAMES *alternatives = X509_get_ext_d2i(certificate, NID_subject_alt_name, &found, NULL);
	struct name_list list;
	list.count = list.bytes = list.addresses = 0;
	if (!alternatives && found != -1) return (struct slice){0}; /* they cannot be read */
	if (host) list_add(&list, slice_of(host));
	for (int i = 0; i < sk_GENERAL_NAME_num(alternatives); i++) {
		int type;
		const ASN1_STRING *name = GENERAL_NAME_get0_value(sk_GENERAL_NAME_value(alternatives, i), &type);
		if (type == GEN_DNS)
			list_add(&list, (struct slice){.at = (const char *)ASN1_STRING_get0_data(name),
										   .length = (size_t)ASN1_STRING_length(name)});
		else if (type == GEN_IPADD) list_add_address(&list, name);
	}
	*addressed = list.addresses;
	char *text = malloc(list.bytes + 1), *at = text;
	qsort(list.name, list.count, sizeof *list.name, by_letters);
	for (size_t i = 0; text && i < list.count; i++) {
		if (i && slice_equal_nocase(list.name[i], list.name[i - 1])) continue;
		for (size_t n = 0; n < list.name[i].length; n++) *at++ = text_lower(list.name[i].at[n]);
		*at++ = '\0';
	}
	GENERAL_NAMES_free(alternatives);
	return (struct slice){.at = text, .length = (size_t)(at - text)};
}

/* Appends a pair, and takes its reference over. Returns false if memory runs out. */
static bool add_pair(struct certificates *set, struct pair *p) {
	struct pair **grown = realloc(set->pair, (set->pairs + 1) * sizeof(struct pair *));
	if (!grown) return false;
	set->pair = grown;
	set->pair[set->pairs++] = p;
	return true;
}

/* Returns whether the set has a certificate from that file. */
static bool holds(const struct certificates *set, const char *origin) {
	for (unsigned i = 0; set && i < set->pairs; i++)
		if (strcmp(set->pair[i]->origin, origin) == 0) return true;
	return false;
}

bool certificates_empty(const struct certificates *set) { return !set->pairs; }

/* Returns how many seconds before its end a certificate should be renewed. */
static int warn_s(const X509 *certificate) {
	int days, seconds;
	if (!ASN1_TIME_diff(&days, &seconds, X509_get0_notBefore(certificate), X509_get0_notAfter(certificate)))
		return CERTIFICATE_WARN_S;
	int64_t third = (days * (int64_t)(24 * 60 * 60) + seconds) / 3;
	return third < CERTIFICATE_WARN_S ? (int)third : CERTIFICATE_WARN_S;
}

/* Returns whether clients lack the certificate of the issuer. Public authorities, which sign with an intermediate
 * certificate, name its URL (RFC 5280, section 4.2.2.1), but few clients fetch it. */
static bool lacks_issuer(const struct pair *p) {
	bool lacks = false;
	if (!p->alone) return false;
	AUTHORITY_INFO_ACCESS *places = X509_get_ext_d2i(p->certificate, NID_info_access, NULL, NULL);
	for (int i = 0; i < sk_ACCESS_DESCRIPTION_num(places); i++)
		lacks |= OBJ_obj2nid(sk_ACCESS_DESCRIPTION_value(places, i)->method) == NID_ad_ca_issuers;
	AUTHORITY_INFO_ACCESS_free(places);
	return lacks;
}

static bool has_invalid_issuer(const struct pair *p) {
	char unused[CERTIFICATE_ERROR];
	for (int i = 0; i < sk_X509_num(p->chain); i++)
		if (!is_valid(sk_X509_value(p->chain, i), 0, unused)) return true;
	return false;
}

void certificates_report(const struct certificates *set, void (*report)(const char *origin, const char *what)) {
	char text[CERTIFICATE_ERROR];
	for (unsigned i = 0; i < set->pairs; i++) {
		const struct pair *p = set->pair[i];
		if (!is_valid(p->certificate, warn_s(p->certificate), text)) report(p->origin, text);
		if (has_invalid_issuer(p))
			report(p->origin,
				   "the certificate of an issuer has expired, or is not valid yet: renew the certificate, and "
				   "install the whole chain that comes with it");
		if (lacks_issuer(p))
			report(p->origin, "the certificate of its issuer is missing, so many clients do not trust it: append that, "
							  "or use fullchain.pem");
	}
}

static bool has_pair(const struct certificates *set, const struct pair *p) {
	for (unsigned i = set->pairs; i-- > 0;)
		if (set->pair[i] == p) return true;
	return false;
}

bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin,
					   const uint64_t *state) {
	bool kept = false, all = true;
	for (unsigned i = 0; last && i < last->pairs; i++) {
		struct pair *p = last->pair[i];
		if ((state && p->state != *state) || strcmp(p->origin, origin) != 0) continue;
		const bool there = has_pair(set, p), has = there || add_pair(set, p);
		if (has && !there) atomic_fetch_add(&p->references, 1);
		kept |= has;
		all &= has;
	}
	return kept && all;
}

static X509 *issuer_of(X509 *certificate, const STACK_OF(X509) * all) {
	for (int i = 0; i < sk_X509_num(all); i++) {
		X509 *other = sk_X509_value(all, i);
		if (other != certificate && X509_check_issued(other, certificate) == X509_V_OK) return other;
	}
	return NULL;
}

static bool contains(const STACK_OF(X509) * chain, const X509 *certificate) {
	for (int i = 0; i < sk_X509_num(chain); i++)
		if (sk_X509_value(chain, i) == certificate) return true;
	return false;
}

/* Returns whether a chain, without its self-signed root, goes as far as it can: X509_build_chain() leaves out
 * certificates that it has no memory for. */
static bool is_complete(const STACK_OF(X509) * chain, const STACK_OF(X509) * all) {
	X509 *last = sk_X509_value(chain, sk_X509_num(chain) - 1);
	bool complete = last;
	for (int i = 0; last && i < sk_X509_num(all); i++) {
		X509 *other = sk_X509_value(all, i);
		if (other == last || X509_check_issued(other, last) != X509_V_OK) continue;
		if (contains(chain, other) || X509_check_issued(other, other) == X509_V_OK) return true;
		complete = false;
	}
	return complete;
}

/* Tests whether OpenSSL accepts a pair: its key may be too short. Returns 0, or -1 with a message in error. */
static int try_pair(SSL_CTX *context, const struct pair *p, char *error) {
	SSL *ssl = SSL_new(context);
	bool good = ssl && SSL_use_cert_and_key(ssl, p->certificate, p->key, p->chain, 0) == 1;
	const char *reason = good ? NULL : ERR_reason_error_string(ERR_peek_last_error());
	SSL_free(ssl);
	return good ? 0 : fail(error, reason ? reason : "no memory");
}

/* Adds a key with its certificate, which is one of all. */
static int add_key(struct certificates *set, EVP_PKEY *key, STACK_OF(X509) * all, const struct certificate_source *from,
				   char *error) {
	X509 *own = NULL;
	for (int i = 0; i < sk_X509_num(all) && !own; i++)
		if (X509_check_private_key(sk_X509_value(all, i), key) == 1) own = sk_X509_value(all, i);
	if (!own) return fail(error, "the private key does not belong to the certificate");
	if (holds(from->last, from->origin) && !is_valid(own, 0, error)) return -1;
	struct pair *p = calloc(1, sizeof *p);
	if (!p) return fail(error, "no memory");
	*p = (struct pair){.references = 1, .state = from->state, .origin = strdup(from->origin)};
	p->names = names_of(own, from->host, &p->addressed);
	p->alone = !issuer_of(own, all);
	p->chain = X509_build_chain(own, all, NULL, 0, NULL, NULL);
	bool complete = is_complete(p->chain, all);
	p->certificate = sk_X509_shift(p->chain); /* the certificate itself comes first */
	if (EVP_PKEY_up_ref(key)) p->key = key;
	struct tm tm = {0};
	if (ASN1_TIME_to_tm(X509_get0_notBefore(own), &tm)) p->from = timegm(&tm);
	if (ASN1_TIME_to_tm(X509_get0_notAfter(own), &tm)) p->until = timegm(&tm);
	/* OpenSSL computes the size of a key once; if memory runs out then, it stays 0, and the key is not used */
	complete &= p->origin && p->names.at && p->certificate && p->key && EVP_PKEY_get_size(key) > 0;
	int result = complete ? try_pair(set->context, p, error) : fail(error, "no memory");
	if (result == 0 && !add_pair(set, p)) result = fail(error, "no memory");
	if (result == -1) pair_release(p);
	return result;
}

int certificates_add(struct certificates *set, const struct certificate_source *from, char *error) {
	const int count = pem_count(from->pem, key_labels); /* looking for another one takes as long as reading one */
	int keys = 0, result = 0;
	unsigned pairs = set->pairs;
	ERR_clear_error();
	STACK_OF(X509) *all = pem_certificates(set->reader, from->pem, CERTIFICATES_IN_FILE_MAX, error);
	BIO *text = BIO_new_mem_buf(from->pem, -1);
	if (!all) result = -1;
	else if (!text) result = fail(error, "no memory");
	for (EVP_PKEY *key; result == 0 && keys < count; keys++) {
		if (!(key = pem_next_key(set->reader, text))) break;
		result = add_key(set, key, all, from, error);
		EVP_PKEY_free(key);
	}
	BIO_free(text);
	if (result == 0 && keys < count)
		result = fail(error, strstr(from->pem, "ENCRYPTED") ? "the private key is encrypted"
															: "a private key of it cannot be read (PEM)");
	if (result == 0 && !keys) result = fail(error, "there is no private key in it (PEM)");
	while (result == -1 && set->pairs > pairs) pair_release(set->pair[--set->pairs]);
	sk_X509_pop_free(all, X509_free);
	ERR_clear_error();
	return result;
}

/* --- sealing --- */

static int by_text(const void *a, const void *b) {
	const struct certified_name *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static bool is_valid_at(const struct pair *p, time_t now) { return p->from <= now && now < p->until; }

/* Returns a number that changes when a certificate becomes valid or expires. */
static uint64_t validity(const struct certificates *set, time_t now) {
	uint64_t bits = 1;
	for (unsigned i = 0; i < set->pairs; i++) bits = 3 * bits + is_valid_at(set->pair[i], now);
	return bits;
}

bool certificates_outdated(const struct certificates *set) { return validity(set, time(NULL)) != set->valid; }

int certificates_seal(struct certificates *set) {
	const time_t now = time(NULL);
	size_t count = set->pairs, n = 0;
	pem_reader_free(set->reader);
	set->reader = NULL;
	for (unsigned i = 0; i < set->pairs; i++)
		for (size_t at = 0; at < set->pair[i]->names.length; at++) count += !set->pair[i]->names.at[at];
	set->name = calloc(count + 1, sizeof *set->name);
	if (!set->name) return -1;
	set->valid = validity(set, now);
	for (unsigned i = 0; i < set->pairs; i++) {
		struct certified_name name = {.text = "", .rank = i, .pair = set->pair[i]};
		if (!is_valid_at(name.pair, now)) name.rank += set->pairs; /* after all valid ones */
		set->name[n++] = name;
		for (struct slice left = name.pair->names; left.length; slice_drop(&left, strlen(left.at) + 1)) {
			name.text = left.at;
			set->name[n++] = name;
		}
	}
	qsort(set->name, count, sizeof *set->name, by_text);
	/* a name belongs to the first pair that has it, and to those with the same names: their keys may have other
	 * types */
	const struct certified_name *first = NULL;
	for (n = 0; n < count; n++) {
		struct certified_name *next = &set->name[set->names];
		*next = set->name[n];
		if (!first || strcmp(next->text, first->text) != 0) first = next;
		if (!slice_equal(next->pair->names, first->pair->names)) continue;
		set->names++;
		if (next->pair->addressed && (!set->addressed || next->rank < set->addressed->rank)) set->addressed = next;
	}
	return 0;
}

/* --- look-up --- */

static int by_name(const void *key, const void *element) {
	return strcmp(key, ((const struct certified_name *)element)->text);
}

/* Returns the first entry of a name, or NULL. */
static const struct certified_name *find_name(const struct certificates *set, const char *text) {
	const struct certified_name *found =
		set->names ? bsearch(text, set->name, set->names, sizeof *set->name, by_name) : NULL;
	while (found && found > set->name && strcmp(found[-1].text, text) == 0) found--;
	return found;
}

/* Returns the first entry of exactly that name, otherwise of one with a wildcard in place of the first label (RFC 6125,
 * section 6.4.3), otherwise NULL. */
static const struct certified_name *find_server(const struct certificates *set, const char *server_name) {
	char name[HOST_MAX + 1];
	size_t n = 0;
	for (; server_name[n] && n < HOST_MAX; n++) name[n] = text_lower(server_name[n]);
	if (n && name[n - 1] == '.') n--;
	name[n] = '\0';
	const struct certified_name *found = n ? find_name(set, name) : NULL;
	char *dot = strchr(name, '.');
	if (found || !dot || dot == name) return found;
	dot[-1] = '*';
	return find_name(set, dot - 1);
}

/* Returns the first entry for the local address, for a client that names no server; or NULL. */
static const struct certified_name *find_address(const struct certificates *set, const SSL *ssl,
												 const struct tls_handshaking *h) {
	char text[PEER_HOST_MAX + 1];
	struct peer address;
	if (!set->addressed || !h->local(ssl, &address)) return NULL;
	text[peer_format_host(text, &address)] = '\0';
	const struct certified_name *found = find_name(set, text);
	return found || peer_is_public(&address) ? found : set->addressed;
}

bool certificates_cover(const struct certificates *set, const char *name) {
	const struct certified_name *found = find_server(set, name);
	return found && is_valid_at(found->pair, time(NULL));
}

/* The application data of OpenSSL (SSL_set_app_data()) is the transport's. */
static int handshaking_index; /* 0: not reserved */

bool tls_reserve_handshaking(void) {
	if (handshaking_index <= 0) handshaking_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	return handshaking_index > 0;
}

bool tls_set_handshaking(SSL *ssl, const struct tls_handshaking *h) {
	return SSL_set_ex_data(ssl, handshaking_index, (void *)(uintptr_t)h);
}

const struct tls_handshaking *tls_handshaking_of(const SSL *ssl) { return SSL_get_ex_data(ssl, handshaking_index); }

int certificates_choose(SSL *ssl, int *alert, void *unused) {
	const struct tls_handshaking *h = tls_handshaking_of(ssl);
	const struct certificates *set = h->certificates;
	const char *server_name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	const struct certified_name *found = server_name ? find_server(set, server_name) : find_address(set, ssl, h);
	(void)unused;
	if (!found && server_name && h->strict_sni) {
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	const struct certified_name *first = found ? found : find_name(set, ""), *end = set->name + set->names;
	SSL_certs_clear(ssl); /* there are some after a HelloRetryRequest */
	for (const struct certified_name *n = first; n && n < end && strcmp(n->text, first->text) == 0; n++) {
		const struct pair *p = n->pair;
		/* of two keys of a type, only the first is used */
		if (SSL_use_cert_and_key(ssl, p->certificate, p->key, p->chain, 0) != 1) ERR_clear_error();
	}
	return found && server_name ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

SSL_CTX *certificates_context(const struct certificates *set) { return set->context; }

/* --- sets --- */

struct certificates *certificates_new(SSL_CTX *context) {
	struct certificates *set = calloc(1, sizeof *set);
	struct pem_reader *reader = pem_reader_new();
	if (!set || !reader) {
		free(set);
		pem_reader_free(reader);
		return NULL;
	}
	set->reader = reader;
	atomic_init(&set->references, 1);
	SSL_CTX_up_ref(context);
	set->context = context;
	return set;
}
