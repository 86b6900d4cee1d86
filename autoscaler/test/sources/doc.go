// Package sources tests the autoscaler's sources of loads against a real Prometheus and a real RabbitMQ, which must be installed: apt-get install
// --no-install-recommends prometheus rabbitmq-server. Nothing is skipped.
package sources
