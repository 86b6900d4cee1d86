package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/store"
)

type getter struct {
	*global
	output     string
	follow     bool
	partitions bool
}

func newGet(g *global) *cobra.Command {
	get := &getter{global: g}
	cmd := &cobra.Command{
		Use:   "get KIND/NAME [-n NAMESPACE] [-o table|wide|json|yaml] [-w] [--partitions]",
		Short: "Show an owner's slots: id, pod, revision, node, state, age",
		Long: `Shows a row for each slot. AGE is for how long the pod has had it. The states are held (a live pod has
it), ending (the same, but the pod is Terminating), moving (held, but the id is at or above the count, and
the pod moves to another one), proposed (a live pod is to have it, and does not lock it yet), free (no pod
has it), dead (its pod is gone, Succeeded or Failed), duplicate (several live pods' receipts lock it),
handover (another pod asks for it) and lost (its pod has outlived its grace period and does not go). With
-o wide it says, in strict mode, whose Lease of the slot counts until when. It lists pods without a slot
on standard error. Run idalloc verify to see what is wrong.

With --partitions it shows a row for each range of partitions. Their states are owned (a live pod has the
id that owns them, and locks them), stopping (the pod is to stop its work on them, because another id is
to have them), taking (the pod does not lock them yet), waiting (the id has no live pod that works on
partitions), nobody (no id owns them) and duplicate (several pods lock them). A row paused is about an id
whose pod works on none. The column FOR says for how long at least it has been so; nothing that is stored
says more.`,
		Example: "  idalloc get deployment/worker -n prod -w",
		RunE:    get.run,
	}
	f := cmd.Flags()
	f.StringVarP(&get.output, "output", "o", "table", "table, wide, json or yaml")
	f.BoolVarP(&get.follow, "watch", "w", false, "after the first output, print again at every change")
	f.BoolVar(&get.partitions, "partitions", false, "show who works on which partitions")
	return cmd
}

func (g *getter) run(cmd *cobra.Command, args []string) error {
	log, err := g.logger()
	if err != nil {
		return err
	}
	if g.partitions {
		return get(g, cmd, log, args, inspect.ReadPartitions, inspect.PartitionView.Table, inspect.PartitionView.Remarks)
	}
	return get(g, cmd, log, args, inspect.Read, inspect.View.Table, inspect.View.Remarks)
}

// get reads an owner and shows it. table writes a view as a table, and remarks says what that does not show.
func get[V any](
	g *getter, cmd *cobra.Command, log logr.Logger, args []string, read func(context.Context, *store.Store, store.Ref) (V, error),
	table func(v V, w io.Writer, now time.Time, wide bool) error, remarks func(V) []string,
) error {
	show, ok := map[string]func(io.Writer, V, time.Time) error{
		"table": func(w io.Writer, v V, now time.Time) error { return table(v, w, now, false) },
		"wide":  func(w io.Writer, v V, now time.Time) error { return table(v, w, now, true) },
		"json":  printJSON[V],
		"yaml":  printYAML[V],
	}[g.output]
	if !ok {
		return usageError{fmt.Errorf("-o %q: use table, wide, json or yaml", g.output)}
	}
	s, ref, err := g.connectTo(args)
	if err != nil {
		return err
	}
	view, err := read(cmd.Context(), s, ref)
	if err != nil {
		return err
	}
	for _, r := range remarks(view) {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), r); err != nil {
			return err
		}
	}
	if err := show(cmd.OutOrStdout(), view, time.Now()); err != nil || !g.follow {
		return err
	}
	last, err := timeless(show, view)
	if err != nil {
		return err
	}
	return inspect.Follow(cmd.Context(), s, ref, log, read, func(v V) error {
		text, err := timeless(show, v)
		if err != nil || text == last {
			return err // many changes of pods change no column
		}
		last = text
		return show(cmd.OutOrStdout(), v, time.Now())
	})
}

// timeless returns what is shown of a view, but for ages.
func timeless[V any](show func(io.Writer, V, time.Time) error, v V) (string, error) {
	var b strings.Builder
	err := show(&b, v, time.Time{})
	return b.String(), err
}

func printJSON[V any](w io.Writer, v V, _ time.Time) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printYAML[V any](w io.Writer, v V, _ time.Time) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append([]byte("---\n"), b...))
	return err
}
