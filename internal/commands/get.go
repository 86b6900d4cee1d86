package commands

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

type getter struct {
	Program
	*Output

	log                           logr.Logger
	follow, partitions, noHeaders bool
}

// NewGet returns the command get.
func NewGet(p Program) *cobra.Command {
	g := &getter{Program: p}
	cmd := p.command(&cobra.Command{
		Use:   "get KIND/NAME [-w] [--partitions]",
		Short: "Show a workload's slots: id, pod, revision, node, state, age",
		Long: `Shows a row for each slot, or with --partitions for each range of partitions.
AGE is that of the pod. FOR says how long, at least, the partitions have been in
their state. docs/messages.md has the states.
"verify" says what is wrong.`,
		Example: "get deployment/worker -n prod -w",
	}, func(cmd *cobra.Command, args []string, out *Output, log logr.Logger) error {
		g.Output, g.log, out.noHeaders = out, log, g.noHeaders
		return g.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
	})
	f := cmd.Flags()
	f.BoolVarP(&g.follow, "watch", "w", false, "print again at every change, of one workload")
	f.BoolVar(&g.noHeaders, "no-headers", false, "print no titles of columns")
	f.BoolVar(&g.partitions, "partitions", false, "show who works on which partitions")
	return cmd
}

func (g *getter) run(ctx context.Context, args []string, out, errs io.Writer) error {
	t, err := ParseTargets(args)
	if err != nil {
		return err
	}
	if g.List == nil {
		_, err = One(args)
	}
	switch named := len(t.Refs); {
	case err != nil:
		return err
	case named != 1 && g.follow:
		return cli.Usagef("-w follows one workload: name it as KIND/NAME")
	case named == 0 && g.partitions:
		return cli.Usagef("--partitions: name the workloads as KIND/NAME")
	case named == 0:
		return g.List(ctx, t, g.Output, out, errs)
	}
	s, namespace, err := g.Connect()
	if err != nil {
		return err
	}
	for k := range t.Refs {
		t.Refs[k].Namespace = namespace
	}
	if g.partitions {
		return show(ctx, g, s, t.Refs, partitions(), out, errs)
	}
	return show(ctx, g, s, t.Refs, slots(), out, errs)
}

// sight is a way to show a workload.
type sight[V any] struct {
	kind    string
	columns inspect.Columns
	read    func(context.Context, *store.Store, kinds.Ref) (V, error)
	rows    func(V, time.Time) [][]string
	remarks func(V) []string
	// none explains why a workload has no rows.
	none func(V) string
}

func slots() sight[inspect.View] {
	return sight[inspect.View]{
		"Slots", inspect.SlotColumns(), inspect.Read, inspect.View.Rows, inspect.View.Remarks, func(inspect.View) string { return "" },
	}
}

func partitions() sight[inspect.PartitionView] {
	return sight[inspect.PartitionView]{
		"Partitions", inspect.PartitionColumns(), inspect.ReadPartitions, inspect.PartitionView.Rows, inspect.PartitionView.Remarks, inspect.PartitionView.None,
	}
}

// show prints workloads. With --watch it prints the workload again at every change.
func show[V any](ctx context.Context, g *getter, s *store.Store, refs []kinds.Ref, by sight[V], out, errs io.Writer) error {
	views := make([]V, 0, len(refs))
	for _, ref := range refs {
		v, err := by.read(ctx, s, ref)
		if err != nil {
			return err
		}
		views = append(views, v)
		for _, remark := range by.remarks(v) {
			if _, err := fmt.Fprintln(errs, remark); err != nil {
				return err
			}
		}
	}
	if err := by.print(out, g.Output, refs, views, time.Now()); err != nil || !g.follow {
		return err
	}
	last := ""
	changed := func(v V) (bool, error) { // many changes of pods change no column
		var text strings.Builder
		err := by.print(&text, g.Output, refs, []V{v}, time.Time{})
		before := last
		last = text.String()
		return last != before, err
	}
	if _, err := changed(views[0]); err != nil {
		return err
	}
	return inspect.Follow(ctx, s, refs[0], g.log, by.read, func(v V) error {
		if news, err := changed(v); err != nil || !news {
			return err
		}
		return by.print(out, g.Output, refs, []V{v}, time.Now())
	})
}

// print prints what was read of the workloads. Ages are relative to now.
func (by sight[V]) print(w io.Writer, o *Output, refs []kinds.Ref, views []V, now time.Time) error {
	if !o.ForPeople() {
		items := make([]Item, 0, len(refs))
		for k, ref := range refs {
			items = append(items, Item{ref, by.kind, views[k]})
		}
		return o.Items(w, len(refs) > 1, items...)
	}
	columns, all, silent := by.columns, [][]string(nil), true
	if len(refs) > 1 {
		columns.Always = append([]string{"WORKLOAD"}, columns.Always...)
	}
	for k, ref := range refs {
		rows := by.rows(views[k], now)
		if none := by.none(views[k]); len(rows) == 0 && none != "" {
			if _, err := fmt.Fprintln(w, none); err != nil {
				return err
			}
			continue
		}
		silent = false
		for _, row := range rows {
			if len(refs) > 1 {
				row = append([]string{NameOf(ref)}, row...)
			}
			all = append(all, row)
		}
	}
	if silent {
		return nil
	}
	return o.Table(w, columns, all)
}
