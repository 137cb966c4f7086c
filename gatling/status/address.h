/* address.h - an address to listen on or to connect to, as --status and --top take it: unix:PATH, PORT, ADDRESS:PORT,
 * with an IPv6 address in brackets; PORT alone is on the loopback interface. */
#ifndef GATLING_STATUS_ADDRESS_H
#define GATLING_STATUS_ADDRESS_H

#include <stdbool.h>
#include <sys/socket.h>

/* Parses an address. Returns false if the text is not one. */
bool status_address(const char *text, struct sockaddr_storage *address, socklen_t *length);

#endif
