/* users.c - see users.h. */
#include "gatling/site/access/users.h"

#include "gatling/base/lines.h"
#include "gatling/base/platform.h"
#include "gatling/base/slice.h"
#include "gatling/site/access/password_cost.h"
#include "gatling/site/access/password_hash.h"

static const char dear[] =
	"to check this hash takes more than 0.5 s of processor time or 256 MB here, or an unknown time, "
	"so access is denied: make one that is cheaper (htpasswd -nB USER)";

bool users_is_allow(struct slice line, struct slice *address) {
	static const struct slice word = SLICE("allow");
	if (!slice_starts(line, word) || line.length == word.length) return false;
	if (line.at[word.length] != ' ' && line.at[word.length] != '\t') return false;
	*address = slice_trim(slice_rest(line, word.length));
	return true;
}

/* Returns whether a text can be a hash of crypt(3): "$ID$..." or "_...", or the 13 characters of DES; or, as in
 * crypt(5), "*" or "!" for a user who may not log in; or one of those that Apache has besides. */
static bool is_hash(struct slice text) {
	static const size_t des = 13;
	if (slice_starts(text, SLICE("{")) || slice_starts(text, SLICE("$apr1$"))) return password_hash_is_apaches(text);
	if (text.length && (text.at[0] == '*' || text.at[0] == '!')) return true;
	return text.length >= des && (text.length == des || text.at[0] == '$' || text.at[0] == '_') &&
		   !memchr(text.at, ' ', text.length);
}

bool users_is_user(struct slice line) {
	const struct slice hash = slice_rest(line, slice_until(line, ':'));
	return hash.length > 1 && (hash.at[1] == '{' || is_hash(slice_rest(hash, 1)));
}

const char *users_check(struct slice line, unsigned *kinds) {
	char text[PLATFORM_CRYPT_ROOM];
	const size_t length = slice_until(line, ':');
	if (length == line.length) return "this is not USER:HASH, so access is denied";
	const struct slice hash = slice_rest(line, length + 1);
	if (length > AUTH_USER_MAX) return "the name is too long, so access is denied";
	if (!is_hash(hash) || hash.length >= sizeof text)
		return "this is no hash that can be checked (htpasswd -B makes one), so access is denied";
	*text_copy(text, hash) = '\0';
	return password_cost(text, PASSWORD_USUAL, kinds) == PASSWORD_DEAR ? dear : NULL;
}

bool users_find(struct slice users, struct slice user, struct slice *hash) {
	struct slice line, address;
	*hash = SLICE("");
	for (struct lines lines = {.rest = users}; lines_next_entry(&lines, &line);) {
		const size_t length = slice_until(line, ':');
		if (length == line.length || users_is_allow(line, &address)) continue;
		const bool found = slice_equal(slice_first(line, length), user);
		if (found || !hash->length) *hash = slice_rest(line, length + 1);
		if (found) return true;
	}
	return false;
}
