// Package sources tests the autoscaler's sources of load against the real servers, which must be installed: apt-get install
// --no-install-recommends prometheus rabbitmq-server. Nothing is skipped.
package sources
