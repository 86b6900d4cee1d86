package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

type getter struct {
	*global
	output

	all        bool
	selector   string
	follow     bool
	partitions bool
}

func newGet(g *global) *cobra.Command {
	get := &getter{global: g}
	cmd := &cobra.Command{
		Use:   "get [KIND/NAME... | KIND[,KIND...]] [-A] [-l SELECTOR] [-w] [--partitions]",
		Short: "Show the slots of workloads, or which workloads use idalloc",
		Long: `With names it shows a row for each slot. Without a name it lists the workloads that use idalloc: those that
have an annotation of idalloc's, which come with the first id. docs/operations.md explains the states.`,
		Example: `  kubectl idalloc get -A
  kubectl idalloc get deploy,sts -l team=shop
  kubectl idalloc get deployment/worker -n prod -w
  kubectl idalloc get deploy worker -o jsonpath='{.slots[?(@.state=="dead")].pod}'`,
		ValidArgsFunction: g.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return get.run(cmd.Context(), args, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	get.tableFlags(cmd)
	f := cmd.Flags()
	f.BoolVarP(&get.all, "all-namespaces", "A", false, "of all namespaces")
	f.StringVarP(&get.selector, "selector", "l", "", "only workloads that have these labels")
	f.BoolVarP(&get.follow, "watch", "w", false, "after the first output, print what changes; for one workload")
	f.BoolVar(&get.partitions, "partitions", false, "show who works on which partitions; for named workloads")
	return cmd
}

func (g *getter) run(ctx context.Context, args []string, out, errs io.Writer) error {
	t, err := parseTargets(args)
	if err != nil {
		return err
	}
	if _, err := g.printer(); err != nil {
		return err
	}
	switch named := len(t.refs); {
	case named > 0 && (g.all || g.selector != ""):
		return usageError{errors.New("-A and -l choose workloads: name none then")}
	case named != 1 && g.follow:
		return usageError{errors.New("-w follows one workload: name it as KIND/NAME, or use kubectl idalloc top")}
	case named == 0 && g.partitions:
		return usageError{errors.New("--partitions: name the workloads as KIND/NAME")}
	}
	s, namespace, err := g.connect()
	if err != nil {
		return err
	}
	for k := range t.refs {
		t.refs[k].Namespace = namespace
	}
	if len(t.refs) == 0 {
		return g.list(ctx, s, namespace, t.kinds, out, errs)
	}
	if g.partitions {
		return show(ctx, g, s, t.refs, partitionSight(), out, errs)
	}
	return show(ctx, g, s, t.refs, slotSight(), out, errs)
}

// sight is a way to look at a workload.
type sight[V any] struct {
	kind    string
	columns inspect.Columns
	read    func(context.Context, *store.Store, store.Ref) (V, error)
	rows    func(V, time.Time) [][]string
	remarks func(V) []string
}

func slotSight() sight[inspect.View] {
	return sight[inspect.View]{"Slots", inspect.SlotColumns(), inspect.Read, slotRows, inspect.View.Remarks}
}

func slotRows(v inspect.View, now time.Time) [][]string {
	rows := make([][]string, 0, len(v.Slots))
	for _, s := range v.Slots {
		rows = append(rows, s.Cells(now))
	}
	return rows
}

func partitionSight() sight[inspect.PartitionView] {
	return sight[inspect.PartitionView]{"Partitions", inspect.PartitionColumns(), inspect.ReadPartitions, partitionRows, func(v inspect.PartitionView) []string {
		if len(v.Ranges) == 0 {
			return append(v.Remarks(), v.None())
		}
		return v.Remarks()
	}}
}

func partitionRows(v inspect.PartitionView, now time.Time) [][]string {
	rows := make([][]string, 0, len(v.Ranges))
	for _, r := range v.Ranges {
		rows = append(rows, r.Cells(now))
	}
	return rows
}

// show prints workloads that were named.
func show[V any](ctx context.Context, g *getter, s *store.Store, refs []store.Ref, by sight[V], out, errs io.Writer) error {
	var (
		items []item
		rows  [][]string
		last  V
	)
	columns := by.columns
	if len(refs) > 1 {
		columns.Always = append([]string{"WORKLOAD"}, columns.Always...)
	}
	for _, ref := range refs {
		v, err := by.read(ctx, s, ref)
		if err != nil {
			return err
		}
		for _, remark := range by.remarks(v) {
			if _, err := fmt.Fprintln(errs, remark); err != nil {
				return err
			}
		}
		last, items = v, append(items, item{workload(ref), by.kind, v})
		for _, row := range by.rows(v, time.Now()) {
			if len(refs) > 1 {
				row = append([]string{nameOf(ref)}, row...)
			}
			rows = append(rows, row)
		}
	}
	var err error
	switch {
	case !g.people():
		err = g.items(out, len(refs) > 1, items...)
	case len(rows) > 0:
		err = g.table(out, columns, rows)
	}
	if err != nil || !g.follow {
		return err
	}
	later := g.output
	later.noHeaders = true
	known := seen{}
	known.differ(keyed(by.rows(last, time.Time{})))
	return inspect.Follow(ctx, s, refs[0], klog.Background(), by.read, func(v V) error {
		fresh, gone := known.differ(keyed(by.rows(v, time.Time{})))
		switch {
		case len(fresh)+len(gone) == 0:
			return nil
		case !g.people():
			return g.items(out, false, item{workload(refs[0]), by.kind, v})
		}
		now, rows := by.rows(v, time.Now()), make([][]string, 0, len(fresh))
		for _, k := range fresh {
			rows = append(rows, now[k])
		}
		for _, first := range gone {
			rows = append(rows, goneRow(columns, first))
		}
		return later.table(out, columns, rows)
	})
}

// list prints the workloads that use idalloc.
func (g *getter) list(ctx context.Context, s *store.Store, namespace string, kinds []string, out, errs io.Writer) error {
	if g.all {
		namespace = ""
	}
	refs, failed := inspect.Workloads(ctx, s, namespace, g.selector, kinds...)
	items, rows := make([]item, 0, len(refs)), make([][]string, 0, len(refs))
	for _, ref := range refs {
		v, err := inspect.Read(ctx, s, ref)
		if errors.Is(err, store.ErrGone) {
			continue
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		items = append(items, item{workload(ref), "Slots", v})
		row := summary(ref, v)
		if g.all {
			row = append([]string{ref.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if !g.people() {
		return errors.Join(g.items(out, true, items...), failed)
	}
	if len(rows) == 0 && failed == nil {
		where := "in namespace " + namespace
		if g.all {
			where = "in the cluster"
		}
		_, err := fmt.Fprintf(errs, "no workload %s uses idalloc\n", where)
		return err
	}
	if len(rows) == 0 {
		return failed
	}
	columns := inspect.Columns{Always: []string{"NAME", "HELD", "WAITING", "CHANGING", "DEAD"}}
	if g.all {
		columns.Always = append([]string{"NAMESPACE"}, columns.Always...)
	}
	return errors.Join(g.table(out, columns, rows), failed)
}

// summary returns the row of a workload in the list.
func summary(ref store.Ref, v inspect.View) []string {
	held, changing, dead := 0, 0, 0
	for _, s := range v.Slots {
		switch s.State {
		case inspect.Dead, inspect.Lost, inspect.Duplicate:
			dead++
		case inspect.Held, inspect.Handover:
			if s.ID < v.Count {
				held++
			}
			if s.Moving || s.State == inspect.Handover {
				changing++
			}
		case inspect.Proposed:
			changing++
		default: // nobody has it
		}
	}
	return []string{nameOf(ref), fmt.Sprintf("%d/%d", held, v.Count), strconv.Itoa(len(v.Waiting)), strconv.Itoa(changing), strconv.Itoa(dead)}
}

func workload(ref store.Ref) metav1.PartialObjectMetadata {
	return about(ref.APIVersion, ref.Kind, ref.Namespace, ref.Name)
}

// nameOf returns a workload's name as kubectl prints it: deployment.apps/worker.
func nameOf(ref store.Ref) string {
	return strings.ToLower(ref.Kind) + "." + ref.GVR().Group + "/" + ref.Name
}
