/* alternate.c - see alternate.h. */
#include "gatling/media/alternate.h"

const struct slice alternate_suffix[ALTERNATES] = {
	[ALTERNATE_AVIF] = SLICE(".avif"),
	[ALTERNATE_WEBP] = SLICE(".webp"),
	[ALTERNATE_MARKDOWN] = SLICE(".md"),
};

const struct slice alternate_type[ALTERNATES] = {
	[ALTERNATE_AVIF] = SLICE("image/avif"),
	[ALTERNATE_WEBP] = SLICE("image/webp"),
	[ALTERNATE_MARKDOWN] = SLICE("text/markdown"),
};

unsigned alternates_of(struct slice path, struct slice *stem) {
	enum { PICTURE = 1 << ALTERNATE_AVIF | 1 << ALTERNATE_WEBP, PAGE = 1 << ALTERNATE_MARKDOWN };
	static const struct {
		struct slice suffix;
		unsigned alternates;
	} originals[] = {
		{SLICE(".jpg"), PICTURE}, {SLICE(".jpeg"), PICTURE}, {SLICE(".png"), PICTURE},
		{SLICE(".gif"), PICTURE}, {SLICE(".html"), PAGE},
	};
	static const char lasts[] = {'g', 'f', 'l', 'G', 'F', 'L'};
	const char last = path.length ? path.at[path.length - 1] : '\0';
	if (!memchr(lasts, last, sizeof lasts)) return 0; /* the usual case */
	for (size_t i = 0; i < sizeof originals / sizeof *originals; i++) {
		if (!slice_ends_nocase(path, originals[i].suffix)) continue;
		*stem = slice_first(path, path.length - originals[i].suffix.length);
		return originals[i].alternates;
	}
	return 0;
}

bool alternate_outdated(enum alternate which, const struct file_version *alternate,
						const struct file_version *original) {
	return which != ALTERNATE_MARKDOWN && original->modified.tv_sec - alternate->modified.tv_sec > ALTERNATE_BEHIND_S;
}

const char *alternate_type_of(struct slice path) {
	for (int i = 0; i < ALTERNATES; i++)
		if (slice_ends(path, alternate_suffix[i])) return alternate_type[i].at;
	return "application/octet-stream";
}
