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

/* A private key with its certificate. */
struct pair {
	char *origin;    /* the file */
	char *names;     /* each followed by a NUL, and one more */
	unsigned kind;   /* of key, see kind_of() */
	unsigned number; /* in the order of addition */
	X509 *certificate;
	EVP_PKEY *key;
	STACK_OF(X509) * chain; /* from the certificate to the authority, without both */
};

/* A context for all keys with the same names. */
struct group {
	SSL_CTX *context;
	const char *names; /* of a pair */
	unsigned kinds;    /* the set of its kinds of key */
};

struct name {
	const char *text; /* in lower case, of a pair */
	unsigned group;
};

struct certificates {
	atomic_uint references;
	char *client_ca;
	struct pair *pair;
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

static void pair_free(struct pair *p) {
	free(p->origin);
	free(p->names);
	X509_free(p->certificate);
	EVP_PKEY_free(p->key);
	sk_X509_pop_free(p->chain, X509_free);
}

void certificates_release(struct certificates *set) {
	if (!set || atomic_fetch_sub(&set->references, 1) > 1) return;
	for (unsigned i = 0; i < set->groups; i++) SSL_CTX_free(set->group[i].context);
	for (unsigned i = 0; i < set->pairs; i++) pair_free(&set->pair[i]);
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

/* The server names of a certificate. */
struct name_list {
	char *name[CERTIFICATE_NAMES_MAX];
	size_t count;
};

static bool list_add(struct name_list *list, const char *name, size_t length) {
	/* no server name */
	if (length > HOST_MAX || memchr(name, '\0', length) || list->count == CERTIFICATE_NAMES_MAX) return true;
	char *lower = strndup(name, length);
	for (size_t i = 0; lower && i < length; i++) lower[i] = text_lower(lower[i]);
	if (lower) list->name[list->count++] = lower;
	return lower;
}

static int by_string(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* Returns the names in one text, each followed by a NUL, and one more: sorted, without duplicates. */
static char *list_text(struct name_list *list) {
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	if (!out) return NULL;
	if (list->count) qsort(list->name, list->count, sizeof *list->name, by_string);
	for (size_t i = 0; i < list->count; i++)
		if (i == 0 || strcmp(list->name[i], list->name[i - 1]) != 0)
			fwrite(list->name[i], 1, strlen(list->name[i]) + 1, out);
	putc('\0', out);
	if (fclose(out) == 0) return text;
	free(text);
	return NULL;
}

static char *names_of(const X509 *certificate, const char *host) {
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
	char *text = ok ? list_text(&list) : NULL;
	while (list.count) free(list.name[--list.count]);
	return text;
}

static size_t names_size(const char *names) {
	size_t n = 0;
	while (names[n]) n += strlen(names + n) + 1;
	return n + 1;
}

/* Appends a copy. Returns false without memory. */
static bool add_pair(struct certificates *set, const struct pair *p) {
	struct pair *grown = realloc(set->pair, (set->pairs + 1) * sizeof *grown);
	if (!grown) return false;
	set->pair = grown;
	struct pair own = {
		.origin = strdup(p->origin), .names = malloc(names_size(p->names)), .kind = p->kind, .number = set->pairs};
	own.chain = X509_chain_up_ref(p->chain);
	if (own.names) memcpy(own.names, p->names, names_size(p->names));
	if (X509_up_ref(p->certificate)) own.certificate = p->certificate;
	if (EVP_PKEY_up_ref(p->key)) own.key = p->key;
	if (!own.origin || !own.names || !own.chain || !own.certificate || !own.key) {
		pair_free(&own);
		return false;
	}
	set->pair[set->pairs++] = own;
	return true;
}

bool certificates_hold(const struct certificates *set, const char *origin) {
	for (unsigned i = 0; set && i < set->pairs; i++)
		if (strcmp(set->pair[i].origin, origin) == 0) return true;
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

void certificates_dates(const struct certificates *set, void (*tell)(const char *origin, const char *what)) {
	char text[CERTIFICATE_ERROR];
	for (unsigned i = 0; i < set->pairs; i++)
		if (!is_valid(set->pair[i].certificate, warn_s(set->pair[i].certificate), text))
			tell(set->pair[i].origin, text);
}

bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin) {
	bool kept = false;
	for (unsigned i = 0; last && i < last->pairs; i++)
		if (strcmp(last->pair[i].origin, origin) == 0) kept |= add_pair(set, &last->pair[i]);
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
		if (!issuer || X509_self_signed(issuer, 0) == 1 || !sk_X509_push(chain, issuer)) break;
		certificate = issuer;
	}
	return chain;
}

static unsigned kind_of(const EVP_PKEY *key) {
	return EVP_PKEY_is_a(key, "RSA") ? 1 : EVP_PKEY_is_a(key, "EC") ? 2 : 4;
}

/* Fails with the reason that OpenSSL gives, or another if it gives none. */
static int fail_with_reason(char *error, const char *otherwise) {
	const char *reason = ERR_reason_error_string(ERR_peek_last_error());
	return fail(error, reason ? reason : otherwise);
}

/* Tests whether OpenSSL accepts them: a key may be too short. */
static int try_pair(const struct pair *p, char *error) {
	SSL_CTX *context = SSL_CTX_new(TLS_server_method());
	bool good = context && SSL_CTX_use_cert_and_key(context, p->certificate, p->key, p->chain, 0) == 1;
	SSL_CTX_free(context);
	return good ? 0 : fail_with_reason(error, "no memory");
}

/* An OCSP response, which is about the certificate of one of several keys, and what became of it. */
struct stapling {
	struct slice response; /* empty: there is none */
	bool attached;
	char error[OCSP_ERROR];
};

static int add_key(struct certificates *set, EVP_PKEY *key, X509 **all, int count,
				   const struct certificate_source *from, struct stapling *ocsp, char *error) {
	X509 *own = NULL;
	for (int i = 0; i < count && !own; i++)
		if (X509_check_private_key(all[i], key) == 1) own = all[i];
	if (!own) return fail(error, "the private key does not belong to the certificate");
	if (!from->at_any_time && !is_valid(own, 0, error)) return -1;
	struct pair p = {.origin = (char *)(uintptr_t)from->origin, .kind = kind_of(key), .certificate = own, .key = key};
	p.names = names_of(own, from->host);
	p.chain = chain_of(own, all, count);
	int result = p.names && p.chain ? try_pair(&p, error) : fail(error, "no memory");
	if (result == 0 && !add_pair(set, &p)) result = fail(error, "no memory");
	sk_X509_free(p.chain);
	free(p.names);
	if (result == 0 && ocsp->response.length &&
		ocsp_attach(own, issuer_of(own, all, count), ocsp->response, ocsp->error) == 0)
		ocsp->attached = true;
	return result;
}

int certificates_add(struct certificates *set, const struct certificate_source *from, char *error, char *warning) {
	X509 *all[CERTIFICATES_IN_FILE_MAX];
	struct stapling stapling = {.response = from->ocsp};
	int count = 0, keys = 0, result = 0;
	unsigned pairs = set->pairs;
	*warning = '\0';
	ERR_clear_error();
	BIO *text = BIO_new_mem_buf(from->pem, -1);
	if (!text) return fail(error, "no memory");
	while (count < CERTIFICATES_IN_FILE_MAX && (all[count] = PEM_read_bio_X509(text, NULL, no_password, NULL))) count++;
	BIO_free(text);
	if (!count) result = fail(error, "there is no certificate in it (PEM)");
	ERR_clear_error();
	text = BIO_new_mem_buf(from->pem, -1);
	if (!text) result = fail(error, "no memory");
	for (EVP_PKEY *key; result == 0 && (key = PEM_read_bio_PrivateKey(text, NULL, no_password, NULL)); keys++) {
		result = add_key(set, key, all, count, from, &stapling, error);
		EVP_PKEY_free(key);
	}
	BIO_free(text);
	if (result == 0 && !keys)
		result = fail(error, strstr(from->pem, "ENCRYPTED") ? "the private key is encrypted"
															: "there is no private key in it (PEM)");
	while (result == -1 && set->pairs > pairs) pair_free(&set->pair[--set->pairs]);
	while (count) X509_free(all[--count]);
	ERR_clear_error();
	if (result == 0 && from->ocsp.length && !stapling.attached) (void)fail(warning, stapling.error);
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
	size_t size = names_size(p->names);
	for (unsigned i = 0; i < set->groups; i++) {
		struct group *g = &set->group[i];
		bool same = names_size(g->names) == size && memcmp(g->names, p->names, size) == 0;
		if (same && !(g->kinds & p->kind)) return g;
	}
	SSL_CTX *context = context_new(set);
	if (!context) return NULL;
	struct group *g = &set->group[set->groups++]; /* there are no more than pairs */
	*g = (struct group){.context = context, .names = p->names};
	return g;
}

/* Orders certificates that are valid now before others, and then in the order of addition. */
static int by_validity(const void *a, const void *b) {
	const struct pair *x = a, *y = b;
	char unused[CERTIFICATE_ERROR];
	bool x_valid = is_valid(x->certificate, 0, unused), y_valid = is_valid(y->certificate, 0, unused);
	return x_valid != y_valid ? (x_valid ? -1 : 1) : x->number < y->number ? -1 : 1;
}

static int make_groups(struct certificates *set) {
	set->group = calloc(set->pairs ? set->pairs : 1, sizeof *set->group);
	if (!set->group) return -1;
	set->groups = 0;
	if (set->pairs) qsort(set->pair, set->pairs, sizeof *set->pair, by_validity);
	for (unsigned i = 0; i < set->pairs; i++) {
		const struct pair *p = &set->pair[i];
		struct group *g = group_for(set, p);
		if (!g || SSL_CTX_use_cert_and_key(g->context, p->certificate, p->key, p->chain, 0) != 1) return -1;
		g->kinds |= p->kind;
	}
	if (set->groups) return 0;
	set->group[0] = (struct group){.context = context_new(set), .names = ""};
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
		for (const char *at = set->group[i].names; *at; at += strlen(at) + 1) count++;
	set->name = calloc(count ? count : 1, sizeof *set->name);
	if (!set->name) return -1;
	for (unsigned i = 0; i < set->groups; i++)
		for (const char *at = set->group[i].names; *at; at += strlen(at) + 1)
			set->name[n++] = (struct name){.text = at, .group = i};
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

SSL_CTX *certificates_find(const struct certificates *set, const char *asked) {
	char name[HOST_MAX + 1];
	size_t n = 0;
	for (; asked[n] && n < HOST_MAX; n++) name[n] = text_lower(asked[n]);
	if (n && name[n - 1] == '.') n--;
	name[n] = '\0';
	SSL_CTX *context = find(set, name);
	char *dot = strchr(name, '.');
	if (context || !dot || dot == name) return context;
	dot[-1] = '*';
	return find(set, dot - 1);
}

SSL_CTX *certificates_default(const struct certificates *set) { return set->group[0].context; }
