#!/bin/sh
# Says what it is asked for, and returns the content of the request.
printf 'Status: 201 Created\nContent-Type: text/plain\n\n'
echo "$REQUEST_METHOD $SCRIPT_NAME $PATH_INFO $QUERY_STRING"
[ "${CONTENT_LENGTH:-0}" -gt 0 ] && head -c "$CONTENT_LENGTH"
exit 0
