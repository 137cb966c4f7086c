#!/bin/sh
# Repositories beside the site, for whoever may come here.
GIT_PROJECT_ROOT=$DOCUMENT_ROOT.repositories GIT_HTTP_EXPORT_ALL=1 REMOTE_USER=${REMOTE_USER:-somebody} exec git http-backend
