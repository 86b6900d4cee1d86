// Package consumers runs the examples that use an id and nothing else of idalloc, in pods of a process node on one local control plane: a
// generator of unique ids, and a Prometheus that shards its targets. Each is scaled and restarted under load, and judged by what it left
// behind: ids in files, the scrapes that targets saw. Prometheus must be installed; the scripts in hack say how.
package consumers
