// Postgres works on the rows of a table, in as many pods as one likes. The keys are split into P ranges. A range is a partition of the
// workload: idalloc decides which pod works on it. With the strategy primary, each range has one pod that works on it as long as
// it lives; while it is dead, another one does.
//
//	postgres work      makes the tables if they are not there, and works on the ranges of this pod until SIGTERM
//
// What to copy from it is Worker in worker.go: every write carries the partition's token, and the database refuses a write with a
// lower token than the row has. So a worker that was suspended for an hour does no harm when it wakes up.
//
//	DATABASE_URL              the database; default postgres://postgres@127.0.0.1:5432/postgres?sslmode=disable
//	FENCE_AFTER               turns on strict mode, such as 6s; default off
//	POD_NAME, POD_NAMESPACE   who this is, from the downward API
package main
