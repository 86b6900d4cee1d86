package main

import (
	"bytes"
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
	"github.com/idalloc/idalloc/pkg/watch"
)

type getter struct {
	*global
	output string
	follow bool
}

func newGet(g *global) *cobra.Command {
	get := &getter{global: g}
	cmd := &cobra.Command{
		Use:   "get KIND/NAME [-n NAMESPACE] [-o table|wide|json|yaml] [-w]",
		Short: "Show an owner's slots: id, pod, revision, node, state, age",
		Long: `Shows a row for each slot. The states are held (a live pod has it), free (no pod has it), dead (its
pod is gone, Succeeded or Failed), duplicate (several live pods' receipts name it), handover (another
pod asks for it) and quarantine (strict mode keeps it free for a while). It lists pods without a slot
on standard error. Run idalloc verify to see what is wrong.`,
		Example: "  idalloc get deployment/worker -n prod -w",
		RunE:    get.run,
	}
	f := cmd.Flags()
	f.StringVarP(&get.output, "output", "o", "table", "table, wide, json or yaml")
	f.BoolVarP(&get.follow, "watch", "w", false, "after the first output, print again at every change")
	return cmd
}

func (g *getter) run(cmd *cobra.Command, args []string) error {
	log, err := g.logger()
	if err != nil {
		return err
	}
	show, ok := map[string]func(io.Writer, inspect.View) error{
		"table": func(w io.Writer, v inspect.View) error { return v.Table(w, time.Now(), false) },
		"wide":  func(w io.Writer, v inspect.View) error { return v.Table(w, time.Now(), true) },
		"json":  printJSON,
		"yaml":  printYAML,
	}[g.output]
	if !ok {
		return usageError{fmt.Errorf("-o %q: use table, wide, json or yaml", g.output)}
	}
	s, ref, err := g.connectTo(args)
	if err != nil {
		return err
	}
	view, err := inspect.Read(cmd.Context(), s, ref)
	if err != nil {
		return err
	}
	if err := remark(cmd.ErrOrStderr(), view); err != nil {
		return err
	}
	if err := show(cmd.OutOrStdout(), view); err != nil || !g.follow {
		return err
	}
	return g.followOwner(cmd.Context(), s, view, ref, log, func(v inspect.View) error { return show(cmd.OutOrStdout(), v) })
}

// remark writes what the rows of the table do not show.
func remark(w io.Writer, v inspect.View) error {
	remarks := make([]string, 0, len(v.Problems)+2)
	for _, p := range v.Problems {
		remarks = append(remarks, "warning: "+p)
	}
	if len(v.Waiting) > 0 {
		remarks = append(remarks, fmt.Sprintf("%d pods have no slot: %s", len(v.Waiting), strings.Join(v.Waiting, ", ")))
	}
	if v.Unlisted > 0 {
		remarks = append(remarks, fmt.Sprintf("%d more ids are free or in quarantine and not shown", v.Unlisted))
	}
	for _, r := range remarks {
		if _, err := fmt.Fprintln(w, r); err != nil {
			return err
		}
	}
	return nil
}

// followOwner shows the view again after each change of the owner or its pods, until ctx ends.
func (g *getter) followOwner(ctx context.Context, s *store.Store, shown inspect.View, ref store.Ref, log logr.Logger, show func(inspect.View) error) error {
	first, err := s.Get(ctx, ref)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	owner := watch.Owner(ctx, s, ref, log)
	pods := watch.Selected(ctx, s, ref.Namespace, first.Selector, log)
	defer func() {
		cancel()
		<-owner.Done()
		<-pods.Done()
	}()
	last, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil // a signal ends the command, which is no error
		case <-owner.Changed():
		case <-pods.Changed():
		}
		view, err := inspect.Read(ctx, s, ref)
		if ctx.Err() != nil {
			return nil
		}
		if store.Temporary(err) {
			log.Info("the slots cannot be read now; they are shown again at the next change", "reason", err.Error())
			continue
		}
		if err != nil {
			return err
		}
		// Many changes of pods change no column.
		now, err := json.Marshal(view)
		if err != nil {
			return err
		}
		if bytes.Equal(now, last) {
			continue
		}
		last = now
		if err := show(view); err != nil {
			return err
		}
	}
}

func printJSON(w io.Writer, v inspect.View) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func printYAML(w io.Writer, v inspect.View) error {
	b, err := yaml.Marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append([]byte("---\n"), b...))
	return err
}
