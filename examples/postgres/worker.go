package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc"
)

const (
	// statementTimeout is how long a statement may take. A worker waits for the one in hand before it returns, and in strict mode a
	// worker has ten seconds for that.
	statementTimeout = 5 * time.Second
	// retryDelay is how long a worker waits before it turns to a database again that has failed.
	retryDelay = 250 * time.Millisecond
)

// ErrStale means that the database has seen a higher token: a later owner of the partition has begun.
var ErrStale = errors.New("the partition has a later owner")

// Worker works on the items of the partitions that this pod owns.
type Worker struct {
	Name string
	DB   *pgxpool.Pool
	// Compute does what there is to do for an item, before the result is written.
	Compute func(ctx context.Context, key int)
	Log     *slog.Logger
}

// Work works on one partition until ctx ends. It is a function for idalloc.RunPartitions. When it returns, no statement is under way.
func (w *Worker) Work(ctx context.Context, p idalloc.Partition) error {
	for ctx.Err() == nil {
		err := w.work(ctx, p)
		switch {
		case err == nil:
		case errors.Is(err, ErrStale):
			// idalloc knows, too, and calls again if the partition comes back.
			w.Log.Warn("refused", "partition", p.Number, "token", p.Token)
			return nil
		default:
			w.Log.Warn("will work again", "partition", p.Number, "error", err)
			pause(ctx, retryDelay)
		}
	}
	return nil
}

// work goes through all items of the partition again and again.
func (w *Worker) work(ctx context.Context, p idalloc.Partition) error {
	if err := w.claim(ctx, p); err != nil {
		return err
	}
	for ctx.Err() == nil {
		for key := range Keys(p).All() {
			w.Compute(ctx, key)
			if err := w.write(ctx, p, key); err != nil {
				return err
			}
			if ctx.Err() != nil {
				return nil
			}
		}
	}
	return nil
}

// claim shows the token of the partition to all its items. From then on none of them takes a write of an earlier owner.
func (w *Worker) claim(ctx context.Context, p idalloc.Partition) error {
	for first, last := range Keys(p).Ranges() {
		const show = `UPDATE item SET token = $1 WHERE token <= $1 AND key BETWEEN $2 AND $3`
		if err := w.exec(ctx, last-first+1, show, p.Token, first, last); err != nil {
			return err
		}
	}
	return nil
}

// write writes the result of an item down.
func (w *Worker) write(ctx context.Context, p idalloc.Partition, key int) error {
	const write = `WITH done AS (
	    UPDATE item SET runs = runs + 1, token = $1 WHERE token <= $1 AND key = $2 RETURNING key
	  ) INSERT INTO run (key, worker, partition, token) SELECT key, $3, $4, $1 FROM done`
	return w.exec(ctx, 1, write, p.Token, key, w.Name, p.Number)
}

// exec returns ErrStale unless the statement changes that many rows. It does not end with ctx: a statement that is given up may
// still be carried out, after this pod has said that its work has stopped.
func (w *Worker) exec(ctx context.Context, rows int, statement string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), statementTimeout)
	defer cancel()
	tag, err := w.DB.Exec(ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("write to the database: %w", err)
	}
	if tag.RowsAffected() != int64(rows) {
		return ErrStale
	}
	return nil
}

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
