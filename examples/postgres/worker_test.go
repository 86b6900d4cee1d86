package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/idalloc/idalloc"
)

func testALaterOwnerShutsTheEarlierOneOut(t *testing.T, db *pgxpool.Pool) {
	t.Helper()
	ctx := t.Context()
	must(t, setup(ctx, db))
	worker := func(name string) *Worker {
		return &Worker{Name: name, DB: db, Log: slog.New(slog.DiscardHandler), Compute: func(context.Context, int) {}}
	}
	early, late := worker("early"), worker("late")
	before, after := idalloc.Partition{Number: 1, Count: 4, Token: 10}, idalloc.Partition{Number: 1, Count: 4, Token: 11}
	first, last := keys/4, keys/2-1

	must(t, early.claim(ctx, before))
	must(t, early.write(ctx, before, first))
	must(t, late.claim(ctx, after))
	for _, key := range []int{first, last} {
		if err := early.write(ctx, before, key); !errors.Is(err, ErrStale) {
			t.Errorf("the earlier owner wrote item %d: %v, want ErrStale", key, err)
		}
		must(t, late.write(ctx, after, key))
	}
	if err := early.claim(ctx, before); !errors.Is(err, ErrStale) {
		t.Errorf("the earlier owner claimed the partition again: %v, want ErrStale", err)
	}
	must(t, early.write(ctx, idalloc.Partition{Number: 2, Count: 4, Token: 10}, keys/2)) // the next range is not touched
	must(t, early.Work(ctx, before))                                                     // it returns, though ctx has not ended
	var runs int
	must(t, db.QueryRow(ctx, `SELECT count(*) FROM run WHERE token > $1 AND worker = 'early'`, before.Token).Scan(&runs))
	if runs != 0 {
		t.Errorf("the earlier owner wrote %d items with a token that is not its own", runs)
	}
	_, err := db.Exec(ctx, `DROP TABLE item, run`) // the next test begins with an empty database
	must(t, err)
}
