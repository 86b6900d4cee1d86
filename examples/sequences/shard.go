package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// statementTimeout is how long a statement may take. A pod waits for the one in hand before it gives its id away.
const statementTimeout = 5 * time.Second

var (
	errTooHigh      = errors.New("the id is not below STRIDE, and its keys would be those of another shard: run fewer replicas")
	errOtherStride  = errors.New("the shard's sequence was made with another stride: set STRIDE to what it was")
	errOtherNumbers = errors.New("the shard's sequence belongs to another id")
)

// Shard is where the holder of one id writes rows.
type Shard struct {
	DB *pgxpool.Pool
	// ID is the shard's number, and its first key.
	ID, Stride int
}

// Name returns the schema's name.
func (s Shard) Name() string { return fmt.Sprintf("shard_%d", s.ID) }

// Open makes the shard if it is not there. It fails if the shard's keys could meet those of another shard.
func (s Shard) Open(ctx context.Context) error {
	if s.ID >= s.Stride {
		return fmt.Errorf("id %d, STRIDE %d: %w", s.ID, s.Stride, errTooHigh)
	}
	ctx, cancel := statement(ctx)
	defer cancel()
	for _, command := range []string{
		`CREATE SCHEMA IF NOT EXISTS ` + s.Name(),
		// A restart of the sequence would repeat keys, so nothing here restarts it. It outlives the pod and the count.
		fmt.Sprintf(`CREATE SEQUENCE IF NOT EXISTS %s.keys INCREMENT BY %d MINVALUE 0 START WITH %d`, s.Name(), s.Stride, s.ID),
		fmt.Sprintf(`CREATE TABLE IF NOT EXISTS %[1]s.item (key bigint PRIMARY KEY DEFAULT nextval('%[1]s.keys'), pod text NOT NULL)`, s.Name()),
	} {
		if _, err := s.DB.Exec(ctx, command); err != nil {
			return fmt.Errorf("make %s: %w", s.Name(), err)
		}
	}
	var start, stride int
	const ask = `SELECT start_value, increment_by FROM pg_sequences WHERE schemaname = $1 AND sequencename = 'keys'`
	if err := s.DB.QueryRow(ctx, ask, s.Name()).Scan(&start, &stride); err != nil {
		return fmt.Errorf("read the sequence of %s: %w", s.Name(), err)
	}
	if stride != s.Stride {
		return fmt.Errorf("%s has %d, STRIDE is %d: %w", s.Name(), stride, s.Stride, errOtherStride)
	}
	if start != s.ID {
		return fmt.Errorf("%s begins with %d: %w", s.Name(), start, errOtherNumbers)
	}
	return nil
}

// Add writes a row and returns its key.
func (s Shard) Add(ctx context.Context, pod string) (key int64, err error) {
	ctx, cancel := statement(ctx)
	defer cancel()
	err = s.DB.QueryRow(ctx, fmt.Sprintf(`INSERT INTO %s.item (pod) VALUES ($1) RETURNING key`, s.Name()), pod).Scan(&key)
	if err != nil {
		return 0, fmt.Errorf("write to %s: %w", s.Name(), err)
	}
	return key, nil
}

// statement returns the context of what is sent to the database. It does not end with ctx: a statement that is given up may still be
// carried out, after the next pod has begun.
func statement(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
}
