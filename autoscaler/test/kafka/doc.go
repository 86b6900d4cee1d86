// Package kafka tests the autoscaler's Kafka source against franz-go's broker in a process, kfake. A real broker is not among what the tests can
// install. Nothing here depends on what only kfake has.
package kafka
