/* certificates.c - see certificates.h. */
#include "gatling/tls/certificates.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/base/text.h"
#include "gatling/http/host.h"
#include "gatling/tls/ocsp.h"
#include "gatling/tls/tls_context.h"

enum { CHAIN_MAX = 16, CERTIFICATES_IN_FILE_MAX = 64, CERTIFICATE_NAMES_MAX = 1024 };

/* A private key with its certificate. Sets share it. */
struct pair {
	atomic_uint references;
	char *origin;       /* the file */
	struct slice names; /* sorted, each with a NUL; malloc'd */
	unsigned kind;      /* of key, see kind_of() */
	bool valid;         /* when its set was sealed */
	X509 *certificate;
	EVP_PKEY *key;
	STACK_OF(X509) * chain; /* from the certificate to the authority, without both */
};

/* A context for all keys with the same names. */
struct group {
	SSL_CTX *context;
	struct slice names; /* of a pair */
	unsigned kinds;     /* the set of its kinds of key */
};

struct name {
	const char *text; /* in lower case, of a pair */
	unsigned group;
};

struct certificates {
	atomic_uint references;
	char *client_ca;
	struct pair **pair; /* in the order of addition */
	unsigned pairs;
	/* filled in by certificates_seal() */
	struct group *group;
	unsigned groups;
	struct name *name; /* sorted */
	size_t names;
};

struct certificates *certificates_new(const char *client_ca) {
	struct certificates *set = calloc(1, sizeof *set);
	if (!set) return NULL;
	atomic_init(&set->references, 1);
	if (client_ca && !(set->client_ca = strdup(client_ca))) {
		free(set);
		return NULL;
	}
	return set;
}

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
	for (unsigned i = 0; i < set->groups; i++) SSL_CTX_free(set->group[i].context);
	for (unsigned i = 0; i < set->pairs; i++) pair_release(set->pair[i]);
	free(set->group);
	free(set->pair);
	free(set->name);
	free(set->client_ca);
	free(set);
}

/* --- adding --- */

static int fail(char *error, const char *what) {
	snprintf(error, CERTIFICATE_ERROR, "%s", what);
	return -1;
}

static int no_password(char *buffer, int size, int writing, void *unused) {
	(void)buffer, (void)size, (void)writing, (void)unused;
	return -1;
}

/* Returns whether the certificate is valid now and for margin_s; else a message is in error. */
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
	char *name[CERTIFICATE_NAMES_MAX];
	size_t count, bytes; /* bytes: with a NUL for each */
};

static bool list_add(struct name_list *list, const char *name, size_t length) {
	/* no server name */
	if (!length || length > HOST_MAX || memchr(name, '\0', length) || list->count == CERTIFICATE_NAMES_MAX) return true;
	char *lower = strndup(name, length);
	if (!lower) return false;
	for (size_t i = 0; i < length; i++) lower[i] = text_lower(lower[i]);
	list->name[list->count++] = lower;
	list->bytes += length + 1;
	return true;
}

static int by_string(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Returns the server names of a certificate, and the host, for struct pair; absent: no memory. */
static struct slice names_of(const X509 *certificate, const char *host) {
	GENERAL_NAMES *alternatives = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	struct name_list list = {.count = 0};
	bool ok = !host || list_add(&list, host, strlen(host));
	for (int i = 0; ok && i < sk_GENERAL_NAME_num(alternatives); i++) {
		const GENERAL_NAME *name = sk_GENERAL_NAME_value(alternatives, i);
		if (name->type != GEN_DNS) continue;
		ok = list_add(&list, (const char *)ASN1_STRING_get0_data(name->d.dNSName),
					  (size_t)ASN1_STRING_length(name->d.dNSName));
	}
	GENERAL_NAMES_free(alternatives);
	char *text = ok ? malloc(list.bytes + 1) : NULL, *at = text;
	qsort(list.name, list.count, sizeof *list.name, by_string);
	for (size_t i = 0; text && i < list.count; i++)
		if (i == 0 || strcmp(list.name[i], list.name[i - 1]) != 0) at = stpcpy(at, list.name[i]) + 1;
	while (list.count) free(list.name[--list.count]);
	return (struct slice){.at = text, .length = (size_t)(at - text)};
}

/* Appends a pair and takes its reference over. Returns false without memory. */
static bool add_pair(struct certificates *set, struct pair *p) {
	struct pair **grown = realloc(set->pair, (set->pairs + 1) * sizeof(struct pair *));
	if (!grown) return false;
	set->pair = grown;
	set->pair[set->pairs++] = p;
	return true;
}

bool certificates_hold(const struct certificates *set, const char *origin) {
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

void certificates_dates(const struct certificates *set, void (*report)(const char *origin, const char *what)) {
	char text[CERTIFICATE_ERROR];
	for (unsigned i = 0; i < set->pairs; i++)
		if (!is_valid(set->pair[i]->certificate, warn_s(set->pair[i]->certificate), text))
			report(set->pair[i]->origin, text);
}

bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin) {
	bool kept = false;
	for (unsigned i = 0; last && i < last->pairs; i++) {
		if (strcmp(last->pair[i]->origin, origin) != 0 || !add_pair(set, last->pair[i])) continue;
		atomic_fetch_add(&last->pair[i]->references, 1);
		kept = true;
	}
	return kept;
}

static X509 *issuer_of(X509 *certificate, X509 **all, int count) {
	for (int i = 0; i < count; i++)
		if (all[i] != certificate && X509_check_issued(all[i], certificate) == X509_V_OK) return all[i];
	return NULL;
}

/* Returns the certificates that lead from this one to its authority, as far as they are here. */
static STACK_OF(X509) * chain_of(X509 *certificate, X509 **all, int count) {
	STACK_OF(X509) *chain = sk_X509_new_null();
	while (chain && sk_X509_num(chain) < CHAIN_MAX && X509_self_signed(certificate, 0) != 1) {
		X509 *issuer = issuer_of(certificate, all, count);
		if (!issuer || X509_self_signed(issuer, 0) == 1 || !X509_add_cert(chain, issuer, X509_ADD_FLAG_UP_REF)) break;
		certificate = issuer;
	}
	return chain;
}

static unsigned kind_of(const EVP_PKEY *key) {
	return EVP_PKEY_is_a(key, "RSA") ? 1 : EVP_PKEY_is_a(key, "EC") ? 2 : 4;
}

/* Tests whether OpenSSL accepts them: a key may be too short. */
static int try_pair(const struct pair *p, char *error) {
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	bool good = context && SSL_CTX_use_cert_and_key(context, p->certificate, p->key, p->chain, 0) == 1;
	const char *reason = good ? NULL : ERR_reason_error_string(ERR_peek_last_error());
	SSL_CTX_free(context);
	return good ? 0 : fail(error, reason ? reason : "no memory");
}

/* Adds a key with its certificate, one of all. Attaches the OCSP response if it is about that: else a message is in
 * warning. */
static int add_key(struct certificates *set, EVP_PKEY *key, X509 **all, int count,
				   const struct certificate_source *from, bool *stapled, char *error, char *warning) {
	X509 *own = NULL;
	for (int i = 0; i < count && !own; i++)
		if (X509_check_private_key(all[i], key) == 1) own = all[i];
	if (!own) return fail(error, "the private key does not belong to the certificate");
	if (!from->at_any_time && !is_valid(own, 0, error)) return -1;
	struct pair *p = calloc(1, sizeof *p);
	if (!p) return fail(error, "no memory");
	*p = (struct pair){.references = 1, .origin = strdup(from->origin), .names = names_of(own, from->host)};
	p->kind = kind_of(key);
	p->chain = chain_of(own, all, count);
	if (X509_up_ref(own)) p->certificate = own;
	if (EVP_PKEY_up_ref(key)) p->key = key;
	bool complete = p->origin && p->names.at && p->chain && p->certificate && p->key;
	int result = complete ? try_pair(p, error) : fail(error, "no memory");
	if (result == 0 && !add_pair(set, p)) result = fail(error, "no memory");
	if (result == -1) pair_release(p);
	else if (from->ocsp.length) *stapled |= ocsp_attach(own, issuer_of(own, all, count), from->ocsp, warning) == 0;
	return result;
}

int certificates_add(struct certificates *set, const struct certificate_source *from, char *error, char *warning) {
	X509 *all[CERTIFICATES_IN_FILE_MAX];
	bool stapled = false;
	int count = 0, keys = 0, result = 0;
	unsigned pairs = set->pairs;
	*warning = '\0';
	ERR_clear_error();
	BIO *text = BIO_new_mem_buf(from->pem, -1);
	if (!text) return fail(error, "no memory");
	while (count < CERTIFICATES_IN_FILE_MAX && (all[count] = PEM_read_bio_X509(text, NULL, no_password, NULL))) count++;
	if (!count) result = fail(error, "there is no certificate in it (PEM)");
	ERR_clear_error();
	(void)BIO_reset(text);
	for (EVP_PKEY *key; result == 0 && (key = PEM_read_bio_PrivateKey(text, NULL, no_password, NULL)); keys++) {
		result = add_key(set, key, all, count, from, &stapled, error, warning);
		EVP_PKEY_free(key);
	}
	BIO_free(text);
	if (result == 0 && !keys)
		result = fail(error, strstr(from->pem, "ENCRYPTED") ? "the private key is encrypted"
															: "there is no private key in it (PEM)");
	while (result == -1 && set->pairs > pairs) pair_release(set->pair[--set->pairs]);
	while (count) X509_free(all[--count]);
	ERR_clear_error();
	if (stapled) *warning = '\0';
	return result;
}

/* --- sealing --- */

static int choose_certificate(SSL *ssl, int *alert, void *unused) {
	const struct tls_handshaking *h = SSL_get_app_data(ssl);
	const char *name = SSL_get_servername(ssl, TLSEXT_NAMETYPE_host_name);
	(void)unused;
	SSL_CTX *context = name ? certificates_find(h->certificates, name) : NULL;
	if (!context && name && h->strict_sni) {
		*alert = SSL_AD_UNRECOGNIZED_NAME;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	if (context && !SSL_set_SSL_CTX(ssl, context)) {
		*alert = SSL_AD_INTERNAL_ERROR;
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	}
	return context ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

static SSL_CTX *context_new(const struct certificates *set) {
	SSL_CTX *context = tls_context_new(set->client_ca);
	if (context) SSL_CTX_set_tlsext_servername_callback(context, choose_certificate);
	return context;
}

/* Returns the group for a pair: one with the same names and no key of its kind, else a new one. NULL: no memory. */
static struct group *group_for(struct certificates *set, const struct pair *p) {
	for (unsigned i = 0; i < set->groups; i++)
		if (slice_equal(set->group[i].names, p->names) && !(set->group[i].kinds & p->kind)) return &set->group[i];
	SSL_CTX *context = context_new(set);
	if (!context) return NULL;
	struct group *g = &set->group[set->groups++]; /* there are no more than pairs */
	*g = (struct group){.context = context, .names = p->names};
	return g;
}

/* Adds the pairs that are valid, or the others, to groups. */
static int add_to_groups(struct certificates *set, bool valid) {
	for (unsigned i = 0; i < set->pairs; i++) {
		const struct pair *p = set->pair[i];
		if (p->valid != valid) continue;
		struct group *g = group_for(set, p);
		if (!g || SSL_CTX_use_cert_and_key(g->context, p->certificate, p->key, p->chain, 0) != 1) return -1;
		g->kinds |= p->kind;
	}
	return 0;
}

/* Makes the groups, those of valid certificates first. */
static int make_groups(struct certificates *set) {
	char unused[CERTIFICATE_ERROR];
	set->group = calloc(set->pairs + 1, sizeof *set->group);
	if (!set->group) return -1;
	set->groups = 0;
	for (unsigned i = 0; i < set->pairs; i++) set->pair[i]->valid = is_valid(set->pair[i]->certificate, 0, unused);
	if (add_to_groups(set, true) == -1 || add_to_groups(set, false) == -1) return -1;
	if (set->groups) return 0;
	set->group[0] = (struct group){.context = context_new(set), .names = SLICE("")};
	set->groups = set->group[0].context != NULL;
	return set->groups ? 0 : -1;
}

/* --- finding --- */

static int by_text(const void *a, const void *b) {
	const struct name *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order ? order : x->group < y->group ? -1 : x->group > y->group; /* the one added first wins */
}

int certificates_seal(struct certificates *set) {
	size_t count = 0, n = 0;
	int made = make_groups(set);
	ERR_clear_error();
	if (made == -1) return -1;
	for (unsigned i = 0; i < set->groups; i++)
		for (size_t at = 0; at < set->group[i].names.length; at++) count += !set->group[i].names.at[at];
	set->name = calloc(count + 1, sizeof *set->name);
	if (!set->name) return -1;
	for (unsigned i = 0; i < set->groups; i++)
		for (struct slice left = set->group[i].names; left.length; slice_drop(&left, strlen(left.at) + 1))
			set->name[n++] = (struct name){.text = left.at, .group = i};
	qsort(set->name, count, sizeof *set->name, by_text);
	for (n = 0; n < count; n++)
		if (!set->names || strcmp(set->name[n].text, set->name[set->names - 1].text) != 0)
			set->name[set->names++] = set->name[n];
	return 0;
}

static int by_name(const void *key, const void *element) { return strcmp(key, ((const struct name *)element)->text); }

static SSL_CTX *find(const struct certificates *set, const char *name) {
	const struct name *found = set->names ? bsearch(name, set->name, set->names, sizeof *set->name, by_name) : NULL;
	return found ? set->group[found->group].context : NULL;
}

SSL_CTX *certificates_find(const struct certificates *set, const char *server_name) {
	char name[HOST_MAX + 1];
	size_t n = 0;
	for (; server_name[n] && n < HOST_MAX; n++) name[n] = text_lower(server_name[n]);
	if (n && name[n - 1] == '.') n--;
	name[n] = '\0';
	SSL_CTX *context = find(set, name);
	char *dot = strchr(name, '.');
	if (context || !dot || dot == name) return context;
	dot[-1] = '*';
	return find(set, dot - 1);
}

SSL_CTX *certificates_default(const struct certificates *set) { return set->group[0].context; }
