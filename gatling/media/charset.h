/* charset.h - whether a text is in UTF-8, as its first bytes tell. */
#ifndef GATLING_MEDIA_CHARSET_H
#define GATLING_MEDIA_CHARSET_H

#include "gatling/base/slice.h"

/* Returns whether "charset=utf-8" is true of a text of that media type (without parameters), whatever follows the
 * bytes of `start`: these are UTF-8, and more than ASCII, or all of the file (not `more`), or HTML that says so.
 * Returns false for HTML in ASCII that names another charset, which is also that of its forms; for XML, which says it
 * itself (RFC 7303, section 3); and for what is not text by its type (RFC 8259, section 11, for JSON). */
bool charset_is_utf8(struct slice type, struct slice start, bool more);

/* Returns the charset that HTML names in a <meta> at its beginning, as browsers find it
 * (https://html.spec.whatwg.org/#prescan-a-byte-stream-to-determine-its-encoding), or an empty slice. */
struct slice charset_of_html(struct slice start);

/* Returns the media type of a text whose name does not tell it, if it begins as XML does: by its root element, or
 * application/xml. Returns NULL if it does not. */
const char *charset_xml_type(struct slice start);

#endif
