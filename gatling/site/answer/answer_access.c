/* answer_access.c - see decision.h: whether the passwords and addresses of .htaccess files admit a request. */
#include "gatling/base/notice.h"
#include "gatling/base/slice.h"
#include "gatling/log/access.h"
#include "gatling/site/answer/decision.h"

static enum auth_result ask(const struct decision *d, const struct guard *guard, enum guard_part part,
							struct auth_answer *admission) {
	const struct auth_client client = {.peer = d->arrival->client, .is_known = d->arrival->client_is_known};
	return basic_auth_check(d->context->auth, guard, part, d->request, &client, d->arrival->may_wait,
							d->context->now_ms, admission);
}

/* Reports a user who is not admitted. */
static void tell_refused(struct slice user, const struct peer *client) {
	static notice_time next;
	char name[ACCESS_USER_MAX + 1], address[PEER_MAX];
	if (!notice_due(&next)) return;
	*text_copy(name, slice_first(user, user.length < ACCESS_USER_MAX ? user.length : ACCESS_USER_MAX)) = '\0';
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~') *c = '?';
	const int length = (int)peer_format(address, client);
	notice_line(
		LEVEL_NOTICE,
		"refused user \"%s\", from %.*s: a wrong password, or no right to the page; the log has each, as 401 with "
		"a user",
		name, length, address);
}

/* Returns whether a part of a guard admits the request. If not, fills in the response. */
static bool admitted(struct decision *d, const struct guard *guard, enum guard_part part) {
	struct response *r = d->response;
	struct auth_answer admission;
	const enum auth_result result = ask(d, guard, part, &admission);
	if (result == AUTH_ADMITTED) {
		if (admission.user.at) r->user = admission.user;
	} else if (result == AUTH_PENDING && admission.job) {
		decision_wait(d, admission.job);
	} else if (admission.lines.at) {
		response_status(r, (int)result);
		r->lines = decision_lines(d, admission.lines, d->lookup.headers);
		r->user = admission.user;
		if (admission.user.at) tell_refused(admission.user, d->arrival->client);
	} else {
		answer_error(d, result ? (int)result : 503);
	}
	return result == AUTH_ADMITTED;
}

/* Returns whether a part of a guard has admitted the request to its site. */
static bool has_admitted(const struct decision *d, const struct guard *guard, enum guard_part part) {
	const struct guard *of_site = &d->site->guard;
	for (int i = 0; i < GUARD_PARTS && d->admitted; i++)
		if (of_site->realm[i] == guard->realm[part] && part != GUARD_ORDER && of_site->rule[i] == guard->rule[part])
			return true;
	return false;
}

/* Returns whether GUARD_ORDER admits the request, so that GUARD_TESTS need not. */
static bool is_excused(const struct decision *d, const struct guard *guard) {
	struct auth_answer ignored;
	return guard->any && ask(d, guard, GUARD_ORDER, &ignored) == AUTH_ADMITTED;
}

bool decision_admitted(struct decision *d, const struct guard *guard) {
	const enum permission permission = guard->permission;
	/* the error page may replace the file, and its guard, in the cache */
	if (permission == PERMISSION_DENIED) answer_error(d, guard->temporary ? 503 : 403);
	if (permission != PERMISSION_REALM) return permission == PERMISSION_OPEN;
	bool any = false;
	d->guarded = true;
	const bool excused = is_excused(d, guard);
	for (int part = 0; part < GUARD_PARTS; part++) {
		if (!guard->realm[part]) continue;
		any = true;
		if (part == GUARD_ORDER ? guard->any : part == GUARD_TESTS && excused) continue;
		if (!has_admitted(d, guard, (enum guard_part)part) && !admitted(d, guard, (enum guard_part)part)) return false;
	}
	return any;
}

bool decision_admitted_to(struct decision *d, struct slice path) {
	struct guard guard = basic_auth_guard(d->context->auth, path, false);
	bool is = decision_admitted(d, &guard);
	d->unlisted = guard.unlisted;
	guard_release(&guard);
	return is;
}

bool decision_admitted_without_file(struct decision *d) {
	return decision_admitted_to(d, (struct slice){.at = d->path, .length = d->site->prefix.length + d->length});
}
