/* certificates.c - see certificates.h. */
#include "gatling/certificates.h"

#include <ctype.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "gatling/host.h"
#include "gatling/tls_context.h"

enum { CHAIN_MAX = 16, CERTIFICATES_IN_FILE_MAX = 64, CERTIFICATE_NAMES_MAX = 1024 };

/* One context for all keys that are for the same names. */
struct group {
	SSL_CTX *context;
	char *origin;       /* the file that it comes from */
	char *names;        /* each followed by a NUL, and one more */
	unsigned key_kinds; /* a set: which kinds of key it has */
};

struct name {
	const char *text; /* in lower case, of a group */
	unsigned group;
};

struct certificates {
	atomic_uint references;
	char *client_ca;
	struct group *group;
	unsigned groups;
	struct name *name; /* sorted, see certificates_seal() */
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

static void group_free(struct group *g) {
	SSL_CTX_free(g->context);
	free(g->names);
	free(g->origin);
}

void certificates_release(struct certificates *set) {
	if (!set || atomic_fetch_sub(&set->references, 1) > 1) return;
	for (unsigned i = 0; i < set->groups; i++) group_free(&set->group[i]);
	free(set->group);
	free(set->name);
	free(set->client_ca);
	free(set);
}

/* --- stapling: the response goes with the certificate, as its application data --- */

static void free_ocsp(void *parent, void *data, CRYPTO_EX_DATA *all, int index, long argument, void *pointer) {
	(void)parent, (void)all, (void)index, (void)argument, (void)pointer;
	free(data);
}

static int ocsp_index(void) {
	static atomic_int index = -1;
	int known = atomic_load(&index), none = -1;
	if (known != -1) return known;
	int fresh = X509_get_ex_new_index(0, NULL, NULL, NULL, free_ocsp);
	return atomic_compare_exchange_strong(&index, &none, fresh) ? fresh : none;
}

struct ocsp {
	size_t length;
	char response[];
};

static bool keep_ocsp(X509 *certificate, struct slice response) {
	struct ocsp *o = malloc(sizeof *o + response.length);
	if (!o) return false;
	o->length = response.length;
	memcpy(o->response, response.at, response.length);
	if (X509_set_ex_data(certificate, ocsp_index(), o)) return true;
	free(o);
	return false;
}

struct slice certificates_ocsp(const X509 *certificate) {
	const struct ocsp *o = certificate ? X509_get_ex_data(certificate, ocsp_index()) : NULL;
	return o ? (struct slice){.at = o->response, .length = o->length} : (struct slice){0};
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

static int check_dates(const X509 *certificate, char *error) {
	const ASN1_TIME *from = X509_get0_notBefore(certificate), *to = X509_get0_notAfter(certificate);
	bool expired = X509_cmp_current_time(to) <= 0, early = X509_cmp_current_time(from) > 0;
	struct tm tm = {0};
	char date[64] = "";
	if (!expired && !early) return 0;
	if (ASN1_TIME_to_tm(expired ? to : from, &tm)) strftime(date, sizeof date, "%F %T UTC", &tm);
	snprintf(error, CERTIFICATE_ERROR,
			 expired ? "the certificate has expired: %s" : "the certificate is not valid yet: %s", date);
	return -1;
}

/* The DNS names of a certificate, and host. */
struct name_list {
	char *name[CERTIFICATE_NAMES_MAX];
	size_t count;
};

static bool list_add(struct name_list *list, const char *name, size_t length) {
	if (length > HOST_MAX || memchr(name, '\0', length) || list->count == CERTIFICATE_NAMES_MAX)
		return true; /* no name */
	char *lower = strndup(name, length);
	for (size_t i = 0; lower && i < length; i++) lower[i] = (char)tolower((unsigned char)lower[i]);
	if (lower) list->name[list->count++] = lower;
	return lower;
}

static int by_string(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

/* The list in one text: each with a NUL behind it, and one more; sorted, without those that are there twice. */
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

/* Takes the context and the names over. NULL: no memory. */
static struct group *add_group(struct certificates *set, SSL_CTX *context, char *names, const char *origin) {
	struct group *group = realloc(set->group, (set->groups + 1) * sizeof *group);
	if (group) set->group = group;
	char *own_origin = strdup(origin);
	if (!group || !context || !names || !own_origin) {
		SSL_CTX_free(context);
		free(names);
		free(own_origin);
		return NULL;
	}
	group = &set->group[set->groups++];
	*group = (struct group){.context = context, .names = names, .origin = own_origin};
	return group;
}

/* The group for a key of that kind: one that has the same names and none of the kind, else a new one. */
static struct group *group_for(struct certificates *set, const X509 *certificate, const char *host, const char *origin,
							   unsigned kind) {
	char *names = names_of(certificate, host);
	size_t size = names ? names_size(names) : 0;
	for (unsigned i = 0; i < set->groups && names; i++) {
		struct group *g = &set->group[i];
		if (g->key_kinds & kind || names_size(g->names) != size || memcmp(g->names, names, size) != 0) continue;
		free(names);
		return g;
	}
	return add_group(set, tls_context_new(set->client_ca), names, origin);
}

bool certificates_keep(struct certificates *set, const struct certificates *last, const char *origin) {
	bool kept = false;
	for (unsigned i = 0; last && i < last->groups; i++) {
		const struct group *g = &last->group[i];
		size_t size = names_size(g->names);
		char *names = strcmp(g->origin, origin) == 0 ? malloc(size) : NULL;
		if (!names || !SSL_CTX_up_ref(g->context)) {
			free(names);
			continue;
		}
		memcpy(names, g->names, size);
		struct group *same = add_group(set, g->context, names, origin);
		if (same) same->key_kinds = ~0U; /* complete */
		kept |= same != NULL;
	}
	return kept;
}

/* The certificates that lead from this one to its authority, as far as they are here. */
static STACK_OF(X509) * chain_of(X509 *certificate, X509 **all, int count) {
	STACK_OF(X509) *chain = sk_X509_new_null();
	while (chain && sk_X509_num(chain) < CHAIN_MAX && X509_self_signed(certificate, 0) != 1) {
		X509 *issuer = NULL;
		for (int i = 0; i < count && !issuer; i++)
			if (all[i] != certificate && X509_check_issued(all[i], certificate) == X509_V_OK) issuer = all[i];
		if (!issuer || X509_self_signed(issuer, 0) == 1 || !sk_X509_push(chain, issuer)) break;
		certificate = issuer;
	}
	return chain;
}

static unsigned kind_of(const EVP_PKEY *key) {
	return EVP_PKEY_is_a(key, "RSA") ? 1 : EVP_PKEY_is_a(key, "EC") ? 2 : 4;
}

static int add_key(struct certificates *set, EVP_PKEY *key, X509 **all, int count, const char *origin, const char *host,
				   struct slice ocsp, char *error) {
	X509 *own = NULL;
	for (int i = 0; i < count && !own; i++)
		if (X509_check_private_key(all[i], key) == 1) own = all[i];
	if (!own) return fail(error, "the private key does not belong to the certificate");
	if (check_dates(own, error) == -1) return -1;
	struct group *g = group_for(set, own, host, origin, kind_of(key));
	STACK_OF(X509) *chain = chain_of(own, all, count);
	bool added = g && chain && SSL_CTX_use_cert_and_key(g->context, own, key, chain, 0) == 1;
	sk_X509_free(chain);
	if (!added || (ocsp.length && !keep_ocsp(own, ocsp))) {
		const char *reason = ERR_reason_error_string(ERR_peek_last_error());
		return fail(error, reason ? reason : "no memory");
	}
	g->key_kinds |= kind_of(key);
	return 0;
}

int certificates_add(struct certificates *set, const char *origin, const char *pem, const char *host, struct slice ocsp,
					 char *error) {
	X509 *all[CERTIFICATES_IN_FILE_MAX];
	int count = 0, keys = 0, result = 0;
	unsigned groups = set->groups;
	ERR_clear_error();
	BIO *text = BIO_new_mem_buf(pem, -1);
	if (!text) return fail(error, "no memory");
	while (count < CERTIFICATES_IN_FILE_MAX && (all[count] = PEM_read_bio_X509(text, NULL, no_password, NULL))) count++;
	BIO_free(text);
	if (!count) result = fail(error, "there is no certificate in it (PEM)");
	ERR_clear_error();
	text = BIO_new_mem_buf(pem, -1);
	for (EVP_PKEY *key; text && result == 0 && (key = PEM_read_bio_PrivateKey(text, NULL, no_password, NULL)); keys++) {
		result = add_key(set, key, all, count, origin, host, ocsp, error);
		EVP_PKEY_free(key);
	}
	BIO_free(text);
	if (result == 0 && !keys)
		result = fail(error, strstr(pem, "ENCRYPTED") ? "the private key is encrypted"
													  : "there is no private key in it (PEM)");
	while (result == -1 && set->groups > groups) group_free(&set->group[--set->groups]);
	while (count) X509_free(all[--count]);
	ERR_clear_error();
	return result;
}

/* --- finding --- */

static int by_text(const void *a, const void *b) {
	const struct name *x = a, *y = b;
	int order = strcmp(x->text, y->text);
	return order ? order : x->group < y->group ? -1 : x->group > y->group; /* the first that was added wins */
}

int certificates_seal(struct certificates *set) {
	size_t count = 0, n = 0;
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
	for (; asked[n] && n < HOST_MAX; n++) name[n] = (char)tolower((unsigned char)asked[n]);
	if (n && name[n - 1] == '.') n--;
	name[n] = '\0';
	SSL_CTX *context = find(set, name);
	char *dot = strchr(name, '.');
	if (context || !dot || dot == name) return context;
	dot[-1] = '*';
	return find(set, dot - 1);
}

SSL_CTX *certificates_default(const struct certificates *set) { return set->group[0].context; }
