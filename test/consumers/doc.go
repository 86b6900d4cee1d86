// Package consumers runs programs that take only what idalloc publishes, in pods of a process node on one local control plane: a generator of
// unique ids, workers in Python and Node.js, and what docs/recipes.md recommends. Each is scaled under load, most are restarted, and all are judged
// by what they left behind: ids in files, results in a queue, rows in a database, the scrapes that targets saw.
//
// RabbitMQ, PostgreSQL, Prometheus, Node.js and Debian's python3-pika must be installed. hack/steps does that.
package consumers
