/* explain.c - see explain.h. With -vvv, uacme prints the fields and the body of each answer, then its own messages. */
#include "gatling/acme/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/http/date.h"

static const char error[] = "the server reported the following error:";

#define ACCOUNT_IS_LOST "the authority does not know our account any more, so another is opened"

/* What has happened -> what the owner is told. Types of problems (RFC 8555, section 6.7), which begin with
 * urn:ietf:params:acme:error:, are the authority's; the others, with blanks, are those of kind_of(). In the text, $ is
 * the detail of the problem or the last message of uacme, @ the URL of the directory, and # the status. */
static const struct {
	const char *kind, *text;
} reasons[] = {
	{"connection", "the authority could not reach port 80 of this name: $"},
	{"dns", "the authority found no address of this name: add it to the DNS: $"},
	{"unauthorized", "the authority got another answer than ours: does the name lead to this server?: $"},
	{"incorrectResponse", "the authority got another answer than ours: does the name lead to this server?: $"},
	{"caa", "a CAA record of this name allows only other authorities: $"},
	{"rateLimited", "the authority wants fewer requests: $"},
	{"rejectedIdentifier", "the authority gives no certificates for this name: $"},
	{"invalidProfile", "the authority has no profile of the name given with --acme-profile: $"},
	{"externalAccountRequired", "the authority wants an external account: give --acme-eab: $"},
	{"invalidContact", "the authority refuses the address given with --acme: $"},
	{"unsupportedContact", "the authority refuses the address given with --acme: $"},
	{"userActionRequired", "the authority wants something of you: $"},
	{"serverInternal", "the authority has an error of its own: $"},
	{"accountDoesNotExist", ACCOUNT_IS_LOST ": $"},
	{"no account", ACCOUNT_IS_LOST},
	{"no trust", "cannot get an answer from @ with a certificate that can be trusted"},
	{"no answer", "cannot get an answer from @"},
	{"is busy", "the authority is out of order, or busy: it answers with status #"},
	{"no authority", "the answer, with status #, is not one of an authority: is @ the directory of one?"},
	{"of uacme", "uacme: $"},
	{NULL, "the authority refuses: $"},
};

/* Returns the text after the last occurrence of a word, or NULL if there is none. */
static const char *after_last(const char *text, const char *word) {
	const char *found = NULL;
	for (const char *at = text; (at = strstr(at, word)); found = at) at += strlen(word);
	return found;
}

/* --- the last answer --- */

struct authority_answer {
	int status;            /* 0: there is none */
	int64_t retry_after_s; /* since the epoch; 0: it does not say */
};

/* Parses a Retry-After: a number of seconds, or a date (RFC 9110, section 10.2.3). Returns a time since the epoch, or 0
 * if it is neither. */
static int64_t parse_retry_after(const char *value, int64_t now_s) {
	time_t date;
	value += strspn(value, " \t");
	if (*value >= '0' && *value <= '9') {
		long seconds = strtol(value, NULL, 10); /* LONG_MAX, if it is more */
		return now_s + (seconds < EXPLAIN_LIMITED_MAX_S ? seconds : EXPLAIN_LIMITED_MAX_S);
	}
	return date_parse((struct slice){.at = value, .length = strcspn(value, "\r\n")}, &date) ? date : 0;
}

static struct authority_answer last_answer(const char *text, int64_t now_s) {
	static const char retry_after[] = "\nretry-after:";
	struct authority_answer answer = {.status = 0};
	const char *fields = after_last(text, ": HTTP headers"), *status = fields ? strstr(fields, "HTTP/") : NULL;
	if (!status) return answer;
	answer.status = (int)strtol(status + strcspn(status, " \r\n"), NULL, 10);
	const char *end = strstr(status, ": HTTP body"), *found = strcasestr(status, retry_after);
	if (found && (!end || found < end)) answer.retry_after_s = parse_retry_after(found + strlen(retry_after), now_s);
	return answer;
}

/* --- the problem that it names --- */

/* Copies the value of a member of JSON, named in its quotes, that is a string, in which only escapes of one character
 * are decoded. Returns false if there is none. */
static bool find_member(const char *json, const char *name, char *value, size_t size) {
	size_t n = 0;
	const char *at = strstr(json, name);
	if (!at) return false;
	at += strlen(name);
	at += strspn(at, " \t\r\n:");
	if (*at++ != '"') return false;
	for (; *at && *at != '"' && n + 1 < size; at++) {
		if (*at == '\\' && at[1]) at++;
		value[n++] = *at;
	}
	value[n] = '\0';
	return true;
}

/* Returns the time in "retry after 2026-01-31 12:00:00 UTC", as Let's Encrypt writes it, or 0 if there is none. */
static int64_t date_in(const char *detail) {
	struct tm tm = {0};
	const char *at = strcasestr(detail, "retry after ");
	if (!at || !strptime(at + strlen("retry after "), "%Y-%m-%d %H:%M:%S", &tm)) return 0;
	return timegm(&tm);
}

/* --- all together --- */

/* Returns what has happened if the authority names no problem. busy: it is, as its answer says. */
static const char *kind_of(const char *text, bool no_account, bool busy) {
	if (no_account) return "no account";
	if (strstr(text, "uacme: profile must be") || strstr(text, "uacme: server does not support profiles"))
		return "invalidProfile"; /* as its directory says, so that it has not been asked */
	if (strstr(text, "curl_")) return strstr(text, "SSL") ? "no trust" : "no answer";
	if (!strstr(text, error)) return "of uacme";
	return busy ? "is busy" : "no authority";
}

/* Writes what the owner is told. Others have chosen parts of it: only what is printable, of their first lines, is
 * copied. */
static void write_reason(char *to, const char *kind, const char *words, const char *url, int status) {
	const char *end = to + OUTCOME_REASON_MAX - 1;
	char number[16];
	size_t i = 0;
	while (reasons[i].kind && strcmp(reasons[i].kind, kind) != 0) i++;
	snprintf(number, sizeof number, "%d", status);
	for (const char *text = reasons[i].text; *text; text++) {
		const char one[] = {*text, '\0'}, *part = *text == '$'   ? words
												  : *text == '@' ? url
												  : *text == '#' ? number
																 : one;
		for (; *part && *part != '\r' && *part != '\n' && to < end; part++)
			*to++ = *part < ' ' || *part > '~' ? '?' : *part;
	}
	*to = '\0';
}

void explain(const char *text, const char *url, int64_t now_s, struct outcome *o) {
	const struct authority_answer answer = last_answer(text, now_s);
	const char *problem = after_last(text, error), *words = after_last(text, "uacme: ");
	char type[128], detail[OUTCOME_REASON_MAX / 2] = "";
	*o = (struct outcome){.limited = answer.status == 429 || (answer.status >= 400 && answer.retry_after_s)};
	if (o->limited) o->limited_until_s = answer.retry_after_s;
	o->no_account = strstr(text, "Consider trying 'new'") || strstr(text, "error:accountDoesNotExist");
	const char *kind = kind_of(text, o->no_account, o->limited || answer.status >= 500);
	if (problem && find_member(problem, "\"type\"", type, sizeof type)) {
		const char *colon = strrchr(type, ':');
		kind = colon ? colon + 1 : type;
		words = find_member(problem, "\"detail\"", detail, sizeof detail) ? detail : "";
		o->limited |= strcmp(kind, "rateLimited") == 0;
		if (!o->limited_until_s) o->limited_until_s = date_in(detail);
	}
	write_reason(o->reason, kind, words ? words : "it says nothing", url, answer.status);
	if (o->limited_until_s > now_s + EXPLAIN_LIMITED_MAX_S) o->limited_until_s = now_s + EXPLAIN_LIMITED_MAX_S;
}
