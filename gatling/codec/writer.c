/* writer.c - see writer.h. */
#include "gatling/codec/writer.h"

void writer_begin(struct writer *w, const struct writer_codec *codec) {
	w->codec = codec;
	w->made = (struct slice){.at = w->out};
	w->ended = false;
}

struct slice writer_put(struct writer *w, struct slice *content, enum writer_step step) {
	if (!w->made.length && !w->ended) w->made.length = w->codec->compress(w, content, step);
	return w->made;
}

bool writer_taken(struct writer *w) {
	w->made.length = 0;
	return w->ended;
}

bool writer_reset(struct writer *w) {
	if (!w->codec->reset || !w->codec->reset(w)) return false;
	writer_begin(w, w->codec);
	return true;
}

void writer_free(struct writer *w) {
	if (w) w->codec->free(w);
}
