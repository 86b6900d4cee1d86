// Package consumers runs the examples that use an id and nothing else of idalloc, in pods of a process node on one local control plane:
// generators of unique ids, a static member of a Kafka group, sequences of PostgreSQL, and a Prometheus that shards its targets. Each is
// scaled and restarted under load, and judged by what it left behind: ids in files, rows in a database, the broker's view of the
// group, the scrapes that targets saw.
//
// PostgreSQL and Prometheus must be installed; the scripts in hack say how. The Kafka broker is kfake, of franz-go, because a real one is not
// among what the tests can install. It judges a static member that comes back more strictly than Kafka does: see kafka_test.go.
package consumers
