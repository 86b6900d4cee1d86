package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/pkg/placement"
)

// keys is how many keys there are, from 0 on.
const keys = 120

// The tables are the work, and who did it. The token of an item is the highest one that was ever shown for it.
const (
	makeItems = `CREATE TABLE IF NOT EXISTS item (
	  key       integer PRIMARY KEY,
	  runs      bigint  NOT NULL DEFAULT 0,
	  token     bigint  NOT NULL DEFAULT 0
	)`
	makeRuns = `CREATE TABLE IF NOT EXISTS run (
	  id        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	  key       integer NOT NULL,
	  worker    text    NOT NULL,
	  partition integer NOT NULL,
	  token     bigint  NOT NULL
	)`
	fillItems = `INSERT INTO item (key) SELECT generate_series(0, $1::integer - 1) ON CONFLICT DO NOTHING`
)

// Keys returns the keys of a partition.
func Keys(p idalloc.Partition) placement.Set {
	return placement.Range{ID: p.Number, Count: p.Count, Partitions: keys}.Set()
}

// setup makes the tables if they are not there. All pods do that at their start, and the lock has one of them do it at a time.
func setup(ctx context.Context, db *pgxpool.Pool) error {
	return pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		for _, statement := range []string{`SELECT pg_advisory_xact_lock(4711)`, makeItems, makeRuns} {
			if _, err := tx.Exec(ctx, statement); err != nil {
				return fmt.Errorf("make the tables: %w", err)
			}
		}
		if _, err := tx.Exec(ctx, fillItems, keys); err != nil {
			return fmt.Errorf("fill the table: %w", err)
		}
		return nil
	})
}
