/* directives.c - see directives.h. */
#include "gatling/site/access/directives.h"

#include <stdlib.h>

#include "gatling/base/slice.h"
#include "gatling/site/access/access_rules.h"

enum { NAME_MAX_HERE = 40 };

/* in order */
static const char *const harmless[] = {
	"acceptpathinfo",
	"action",
	"addalt",
	"addaltbyencoding",
	"addaltbytype",
	"addcharset",
	"adddefaultcharset",
	"adddescription",
	"addencoding",
	"addhandler",
	"addicon",
	"addiconbyencoding",
	"addiconbytype",
	"addinputfilter",
	"addlanguage",
	"addoutputfilter",
	"addoutputfilterbytype",
	"addtype",
	"browsermatch",
	"browsermatchnocase",
	"cachedefaultexpire",
	"cachemaxexpire",
	"cgipassauth",
	"cgivar",
	"checkbasenamematch",
	"checkcaseonly",
	"checkspelling",
	"contentdigest",
	"cookiedomain",
	"cookieexpires",
	"cookiename",
	"cookiestyle",
	"cookietracking",
	"defaulticon",
	"defaultlanguage",
	"defaulttype",
	"directorycheckhandler",
	"directoryindex",
	"directoryindexredirect",
	"directoryslash",
	"enablemmap",
	"enablesendfile",
	"errordocument",
	"expiresactive",
	"expiresbytype",
	"expiresdefault",
	"fallbackresource",
	"fileetag",
	"filterchain",
	"filterdeclare",
	"filterprotocol",
	"filterprovider",
	"filtertrace",
	"forcelanguagepriority",
	"forcetype",
	"h2push",
	"h2pushresource",
	"header",
	"headername",
	"imapbase",
	"imapdefault",
	"imapmenu",
	"indexheadinsert",
	"indexignore",
	"indexignorereset",
	"indexoptions",
	"indexorderdefault",
	"indexstylesheet",
	"languagepriority",
	"limitrequestbody",
	"limitxmlrequestbody",
	"metadir",
	"metafiles",
	"metasuffix",
	"modmimeusepathinfo",
	"multiviewsmatch",
	"options",
	"passenv",
	"php_flag",
	"php_value",
	"qualifyredirecturl",
	"readmename",
	"redirect",
	"redirectmatch",
	"redirectpermanent",
	"redirectrelative",
	"redirecttemp",
	"removecharset",
	"removeencoding",
	"removehandler",
	"removeinputfilter",
	"removelanguage",
	"removeoutputfilter",
	"removetype",
	"requestheader",
	"rewritebase",
	"rewritecond",
	"rewriteengine",
	"rewriteoptions",
	"rewriterule",
	"rlimitcpu",
	"rlimitmem",
	"rlimitnproc",
	"scriptinterpretersource",
	"serversignature",
	"setenv",
	"setenvif",
	"setenvifexpr",
	"setenvifnocase",
	"sethandler",
	"setinputfilter",
	"setoutputfilter",
	"ssierrormsg",
	"ssietag",
	"ssilastmodified",
	"ssilegacyexprparser",
	"ssitimeformat",
	"ssiundefinedecho",
	"ssloptions",
	"substitute",
	"substituteinheritbefore",
	"substitutemaxlinelength",
	"unsetenv",
	"xbithack",
};

static int compare(const void *name, const void *entry) { return strcmp(name, *(const char *const *)entry); }

/* Writes a name in lower case, NUL-terminated. Returns false if it is too long. */
static bool lower(struct slice name, char *out) {
	if (name.length >= NAME_MAX_HERE) return false;
	for (size_t i = 0; i < name.length; i++) out[i] = text_lower(name.at[i]);
	out[name.length] = '\0';
	return true;
}

bool directive_is_harmless(struct slice name) {
	char text[NAME_MAX_HERE];
	return lower(name, text) && bsearch(text, harmless, sizeof harmless / sizeof *harmless, sizeof *harmless, compare);
}

/* --- what forbids --- */

/* Returns whether a text is not certainly a status below 400. */
static bool is_error(struct slice status) { return status.length != 3 || status.at[0] < '1' || status.at[0] > '3'; }

/* Returns whether one of the flags of a RewriteRule, "[NC,F]", makes its answer an error, or cannot be read. */
static bool flags_forbid(struct slice flags) {
	struct slice flag;
	if (flags.at[0] != '[' || flags.at[flags.length - 1] != ']') return true;
	flags = (struct slice){.at = flags.at + 1, .length = flags.length - 2};
	while (slice_next_element(&flags, &flag)) {
		const struct slice name = slice_first(flag, slice_until(flag, '='));
		struct slice value = slice_rest(flag, name.length);
		slice_drop(&value, value.length > 0); /* its '=' */
		if (slice_equal_nocase(name, SLICE("F")) || slice_equal_nocase(name, SLICE("forbidden")) ||
			slice_equal_nocase(name, SLICE("G")) || slice_equal_nocase(name, SLICE("gone")))
			return true;
		if ((slice_equal_nocase(name, SLICE("R")) || slice_equal_nocase(name, SLICE("redirect"))) && value.length &&
			text_is_digit(value.at[0]) && is_error(value))
			return true;
	}
	return false;
}

/* Takes a word of a RewriteRule, which may have backslashes, off the front. Returns false if there is none. */
static bool next_pattern(struct slice *text, struct slice *word) {
	*text = slice_trim(*text);
	*word = *text;
	if (!text->length) return false;
	const char quote = text->at[0];
	const bool quoted = quote == '"' || quote == '\'';
	size_t n = quoted;
	while (n < text->length && (quoted ? text->at[n] != quote : text->at[n] != ' ' && text->at[n] != '\t'))
		n += text->at[n] == '\\' && n + 1 < text->length ? 2 : 1;
	word->length = n < text->length ? n + quoted : n;
	slice_drop(text, word->length);
	return true;
}

static bool rewrite_forbids(struct slice arguments) {
	struct slice pattern, target, flags = {0};
	if (!next_pattern(&arguments, &pattern) || !next_pattern(&arguments, &target)) return true;
	arguments = slice_trim(arguments);
	if (!arguments.length) return false;
	if (arguments.at[0] == '"' && (!access_next_word(&arguments, &flags) || slice_trim(arguments).length)) return true;
	if (!flags.length) flags = arguments;
	return flags.length < 2 || flags_forbid(flags);
}

static bool redirect_forbids(struct slice arguments) {
	struct slice status;
	if (!next_pattern(&arguments, &status)) return true;
	if (text_is_digit(status.at[0])) return is_error(status);
	return slice_equal_nocase(status, SLICE("gone"));
}

bool directive_forbids(struct slice name, struct slice arguments) {
	if (slice_equal_nocase(name, SLICE("RewriteRule"))) return rewrite_forbids(arguments);
	return (slice_equal_nocase(name, SLICE("Redirect")) || slice_equal_nocase(name, SLICE("RedirectMatch"))) &&
		   redirect_forbids(arguments);
}

/* --- conditions --- */

enum directive_condition directive_if_module(struct slice argument) {
	static const char *const there[] = {"access_compat", "alias",      "auth_basic", "authn_core", "authn_file",
										"authz_core",    "authz_host", "authz_user", "autoindex",  "dir",
										"env",           "mime",       "setenvif",   "so",         "version"};
	static const char *const gone[] = {"access", "auth", "authz_default", "authn_default", "authn_alias"};
	const bool negated = argument.length && argument.at[0] == '!';
	struct slice name = slice_rest(argument, negated);
	if (slice_starts(name, SLICE("mod_")) && slice_ends(name, SLICE(".c")))
		name = slice_first(slice_rest(name, 4), name.length - 6);
	else if (slice_ends(name, SLICE("_module"))) name.length -= 7;
	else return CONDITION_UNKNOWN;
	for (size_t i = 0; i < sizeof there / sizeof *there; i++)
		if (slice_equal(name, slice_of(there[i]))) return negated ? CONDITION_FALSE : CONDITION_TRUE;
	for (size_t i = 0; i < sizeof gone / sizeof *gone; i++)
		if (slice_equal(name, slice_of(gone[i]))) return negated ? CONDITION_TRUE : CONDITION_FALSE;
	return CONDITION_UNKNOWN;
}

enum directive_condition directive_if_version(struct slice arguments) {
	enum { HAS_MAJOR = 2, HAS_MINOR = 4, WORDS = 2 };
	struct slice word[WORDS], *version = word;
	unsigned count = 0;
	while (count < WORDS && access_next_word(&arguments, &word[count])) count++;
	if (!count || arguments.length) return CONDITION_UNKNOWN;
	struct slice sign = SLICE("=");
	if (count == WORDS) sign = *version++;
	const bool negated = sign.at[0] == '!';
	if (negated) slice_drop(&sign, 1);
	if (version->length != 3 || !text_is_digit(version->at[0]) || version->at[1] != '.' ||
		!text_is_digit(version->at[2]))
		return CONDITION_UNKNOWN; /* with a third number it depends on that of the server */
	const int major = version->at[0] - '0', minor = version->at[2] - '0';
	const bool same = HAS_MAJOR == major && HAS_MINOR == minor; /* 2.4.1 is newer than 2.4 */
	const bool newer = HAS_MAJOR > major || (HAS_MAJOR == major && HAS_MINOR > minor) || same;
	bool holds;
	if (slice_equal(sign, SLICE(">=")) || slice_equal(sign, SLICE(">"))) holds = newer;
	else if (slice_equal(sign, SLICE("<=")) || slice_equal(sign, SLICE("<"))) holds = !newer;
	else if (!same && (slice_equal(sign, SLICE("=")) || slice_equal(sign, SLICE("==")))) holds = false;
	else return CONDITION_UNKNOWN;
	return holds != negated ? CONDITION_TRUE : CONDITION_FALSE;
}
