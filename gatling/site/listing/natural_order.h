/* natural_order.h - the order in which people expect names. */
#ifndef GATLING_SITE_LISTING_NATURAL_ORDER_H
#define GATLING_SITE_LISTING_NATURAL_ORDER_H

/* Compares as strcmp(3) does, but takes numbers in the names by their value ("file2" precedes "file10") and ignores the
 * case of ASCII letters, unless there is no other difference. Returns 0 only if the names are the same. */
int natural_order_compare(const char *a, const char *b);

#endif
