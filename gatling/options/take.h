/* take.h - options whose values have rules of their own. */
#ifndef GATLING_OPTIONS_TAKE_H
#define GATLING_OPTIONS_TAKE_H

#include "gatling/options/row.h"

option_parse take_acme, take_acme_directory, take_acme_name, take_acme_profile, take_cert, take_fallback, take_health,
	take_key, take_listen, take_proxy_protocol, take_trust, take_upstream;

#endif
