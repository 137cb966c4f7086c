/* lines.c - see lines.h. */
#include "gatling/base/lines.h"

#include "gatling/base/slice.h"

struct lines lines_of(struct slice text) {
	(void)text_skip(&text, SLICE("\xEF\xBB\xBF"));
	return (struct lines){.rest = text};
}

bool lines_next(struct lines *l, struct slice *line) {
	if (!l->rest.length) return false;
	*line = slice_first(l->rest, slice_until(l->rest, '\n'));
	slice_drop(&l->rest, line->length + (line->length < l->rest.length));
	if (slice_ends(*line, SLICE("\r"))) line->length--;
	*line = slice_trim(*line);
	l->number++;
	return true;
}

bool lines_next_entry(struct lines *l, struct slice *line) {
	while (lines_next(l, line))
		if (line->length && line->at[0] != '#') return true;
	return false;
}

bool lines_next_word(struct slice *line, struct slice *word) {
	*line = slice_trim(*line);
	if (!line->length || line->at[0] == '#') return false;
	*word = slice_first(*line, slice_until(*line, ' '));
	word->length = slice_until(*word, '\t');
	slice_drop(line, word->length);
	return true;
}
