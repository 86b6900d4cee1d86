// Sequences numbers rows in many databases so that no two of them ever have one key. Each pod writes to a database of its own, the shard
// of its id, and takes keys from a sequence there: id, id + stride, id + 2 × stride, and on. So rows of different shards can be
// merged. Here a shard is a schema of one PostgreSQL.
//
// What to copy from it is Shard in shard.go. The stride is a constant, and not the count: with INCREMENT BY count the sequences of
// another count meet the old ones after a scale.
//
//	DATABASE_URL              the database; default postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable
//	STRIDE                    the most replicas that there will ever be, the same for all pods for ever; default 1024
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
package main
