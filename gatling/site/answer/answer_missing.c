/* answer_missing.c - see decision.h: listings and other answers where there is no file. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "gatling/base/slice.h"
#include "gatling/base/workspace.h"
#include "gatling/files/report.h"
#include "gatling/http/precondition.h"
#include "gatling/site/answer/decision.h"

/* Returns the Cache-Control line of a listing, which is that of a page: a listing cannot be revalidated, but without
 * the line caches would choose a lifetime themselves. Absent if the owner has set a short one, or wants none. */
static struct slice listing_cache_control(const struct decision *d) {
	const struct header_set *set = d->lookup.headers;
	if (!d->context->options->cache_control) return (struct slice){0};
	for (unsigned i = 0; set && i < set->count; i++)
		if (header_named(&set->item[i], "Cache-Control") && !header_lasts(&set->item[i])) return (struct slice){0};
	const bool restricted = d->lookup.restricted || d->guarded;
	return restricted ? SLICE("Cache-Control: private, no-cache\r\n") : SLICE("Cache-Control: no-cache\r\n");
}

static void answer_listing(struct decision *d) {
	struct response *r = d->response;
	struct listing_result found;
	enum listing_format format = listing_format_of(d->request->query);
	bool gzip = d->context->options->gzip_cache;
	int coding = coding_choose(d->request, 1U << CODING_IDENTITY | (gzip ? 1U << CODING_GZIP : 0)); /* never -1 */
	struct listing_request request = {.path = *d->path ? d->path : ".",
									  .title = decision_path(d),
									  .of_site = site_begins_at(d->site, decision_path(d)),
									  .format = format,
									  .coding = (enum coding)coding};
	int error = listing_cache_find(d->context->listings, &request, d->arrival->may_wait, &found);
	if (error) {
		answer_error(d, response_status_of(error));
		return;
	}
	if (found.job) {
		decision_wait(d, found.job);
		return;
	}
	const int status = precondition_status(d->request, &(struct validators){0}); /* a listing has none */
	if (status) listing_reader_free(found.reader);
	if (status == 412) {
		answer_error(d, status);
		return;
	}
	r->status = status ? status : 200;
	r->varies = true;
	d->lookup.is_substitute = true;
	r->lines = decision_lines(d, listing_cache_control(d), d->lookup.headers);
	if (status) return;
	r->source =
		(struct generated_content){.fill = listing_fill,
								   .release = listing_reader_free,
								   .owner = found.reader,
								   .length = found.length,
								   .memory = LISTING_READER,
								   .coding = found.coding,
								   .type = format == LISTING_JSON ? "application/json" : "text/html; charset=utf-8"};
}

void answer_report_link(const struct decision *d) {
	struct names *names = d->context->names;
	if (!d->context->tree.docroot.outside || d->context->tree.remote) return;
	size_t n = names_reach(names, slice_of(d->path));
	while (n && d->path[n - 1] != '/') n--;
	for (; n; n--) {
		if (d->path[n - 1] != '/') continue;
		const struct slice directory = {.at = d->path, .length = n - 1};
		if (names_lack(names, directory)) continue;
		if (names_entered(names, directory)) return;
		d->path[n - 1] = '\0';
		const bool leads_out = report_link(&d->context->tree.docroot, d->path);
		d->path[n - 1] = '/';
		if (leads_out) return;
	}
}

void answer_missing(struct decision *d) {
	struct stat st;
	if (answer_link(d)) return;
	if (d->site->redirects && answer_index_script(d)) return;
	const int error = decision_names_directory(d) ? answer_page(d, 301) : ENOENT;
	if (!error || answer_unknown(d, error)) return;
	if (d->site->redirects && answer_by_rule(d, false)) return;
	d->local[d->length] = '\0'; /* cuts the name of the index off */
	bool exists = decision_names_directory(d) &&
				  names_stat(d->context->names, &d->context->tree, *d->path ? d->path : ".", &st) == 0;
	if (decision_names_directory(d) && !exists && answer_unknown(d, errno)) return;
	if (exists) {
		if (!S_ISDIR(st.st_mode)) answer_error(d, 404);
		else if (d->context->options->listings && !d->unlisted) answer_listing(d);
		else answer_error(d, 403);
	} else if (d->context->options->fallback) {
		answer_fallback_redirect(d);
	} else {
		answer_error(d, 404);
	}
}
