/* natural_order.h - the order in which people look for names. */
#ifndef GATLING_SITE_LISTING_NATURAL_ORDER_H
#define GATLING_SITE_LISTING_NATURAL_ORDER_H

/* Compares as strcmp(3) does, but numbers in the names by their value ("file2" comes before "file10") and the letters
 * of ASCII whatever their case. 0: the names are the same. */
int natural_order_compare(const char *a, const char *b);

#endif
