// Package sources tests the autoscaler's source of loads in Prometheus against the real server, which must be installed: apt-get install
// --no-install-recommends prometheus. The tests of examples/rabbitmq do so with RabbitMQ. Nothing is skipped.
package sources
