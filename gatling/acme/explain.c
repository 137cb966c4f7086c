/* explain.c - see explain.h. With -vvv, uacme prints the fields and the body of each answer, then its own messages. */
#include "gatling/acme/explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gatling/http/date.h"

static const char error[] = "the server reported the following error:";

static const char account_is_lost[] = "the authority does not know our account any more, so another is opened";

/* Explanations of the types of problems (RFC 8555, section 6.7), which begin with urn:ietf:params:acme:error:. */
static const struct {
	const char *type, *meaning;
} problems[] = {
	{"connection", "the authority could not reach port 80 of this name"},
	{"dns", "the authority found no address of this name: add it to the DNS"},
	{"unauthorized", "the authority got another answer than ours: does the name lead to this server?"},
	{"incorrectResponse", "the authority got another answer than ours: does the name lead to this server?"},
	{"caa", "a CAA record of this name allows only other authorities"},
	{"rateLimited", "the authority wants fewer requests"},
	{"rejectedIdentifier", "the authority gives no certificates for this name"},
	{"externalAccountRequired", "the authority wants an external account: give --acme-eab"},
	{"invalidContact", "the authority refuses the address given with --acme"},
	{"unsupportedContact", "the authority refuses the address given with --acme"},
	{"userActionRequired", "the authority wants something of you"},
	{"serverInternal", "the authority has an error of its own"},
	{"accountDoesNotExist", account_is_lost},
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

/* Copies the value of a member of JSON that is a string, in which only escapes of one character are decoded. Returns
 * false if there is none. */
static bool find_member(const char *json, const char *name, char *value, size_t size) {
	char quoted[32];
	size_t n = 0;
	snprintf(quoted, sizeof quoted, "\"%s\"", name);
	const char *at = strstr(json, quoted);
	if (!at) return false;
	at += strlen(quoted);
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

static void explain_problem(const char *type, const char *detail, struct outcome *o) {
	const char *colon = strrchr(type, ':'), *kind = colon ? colon + 1 : type, *meaning = "the authority refuses";
	for (size_t i = 0; i < sizeof problems / sizeof *problems; i++)
		if (strcmp(kind, problems[i].type) == 0) meaning = problems[i].meaning;
	if (strcmp(kind, "rateLimited") == 0) o->limited = true;
	if (!o->limited_until_s) o->limited_until_s = date_in(detail);
	snprintf(o->reason, sizeof o->reason, "%s: %s", meaning, detail);
}

/* --- no problem is named --- */

static void explain_failure(const char *text, const char *url, int status, struct outcome *o) {
	const char *last = after_last(text, "uacme: ");
	if (strstr(text, "curl_"))
		snprintf(o->reason, sizeof o->reason, "cannot get an answer from %s%s", url,
				 strstr(text, "SSL") ? " with a certificate that can be trusted" : "");
	else if (!strstr(text, error)) snprintf(o->reason, sizeof o->reason, "uacme: %s", last ? last : "it says nothing");
	else if (o->limited || status >= 500)
		snprintf(o->reason, sizeof o->reason, "the authority is out of order, or busy: it answers with status %d",
				 status);
	else
		snprintf(o->reason, sizeof o->reason,
				 "the answer, with status %d, is not one of an authority: is %s the directory of one?", status, url);
	o->reason[strcspn(o->reason, "\r\n")] = '\0';
}

void explain(const char *text, const char *url, int64_t now_s, struct outcome *o) {
	const struct authority_answer answer = last_answer(text, now_s);
	const char *problem = after_last(text, error);
	char type[128], detail[OUTCOME_REASON_MAX / 2] = "";
	*o = (struct outcome){.limited = answer.status == 429 || (answer.status >= 400 && answer.retry_after_s)};
	if (o->limited) o->limited_until_s = answer.retry_after_s;
	o->no_account = strstr(text, "Consider trying 'new'") || strstr(text, "error:accountDoesNotExist");
	if (problem && find_member(problem, "type", type, sizeof type)) {
		(void)find_member(problem, "detail", detail, sizeof detail);
		explain_problem(type, detail, o);
	} else if (o->no_account) {
		snprintf(o->reason, sizeof o->reason, "%s", account_is_lost);
	} else {
		explain_failure(text, url, answer.status, o);
	}
	if (o->limited_until_s > now_s + EXPLAIN_LIMITED_MAX_S) o->limited_until_s = now_s + EXPLAIN_LIMITED_MAX_S;
	for (char *at = o->reason; *at; at++)
		if (*at < ' ' || *at > '~') *at = '?'; /* others have chosen the text */
}
