package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

// lister lists workloads.
type lister struct {
	*global

	all      bool
	selector string
}

var errChosen = cli.Usagef("-A and -l choose workloads: name none then")

// newGet returns the command get, which also lists workloads.
func newGet(g *global) *cobra.Command {
	l := &lister{global: g}
	p := g.program()
	p.List = l.list
	cmd := g.ofUsers(commands.NewGet(p))
	cmd.Use = "get [KIND/NAME... | KIND[,KIND...]]"
	cmd.Short = "Show the slots of workloads, or which workloads use idalloc"
	cmd.Long += ` Without a name, get lists the workloads that
have an annotation of idalloc's, which come with the first id.`
	cmd.Example = `  kubectl idalloc get -A
  kubectl idalloc get deploy,sts -l team=shop
` + cmd.Example + `
  kubectl idalloc get deploy worker -o jsonpath='{.slots[*].pod}'`
	f := cmd.Flags()
	f.BoolVarP(&l.all, "all-namespaces", "A", false, "of all namespaces")
	f.StringVarP(&l.selector, "selector", "l", "", "only workloads that have these labels")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if t, err := commands.ParseTargets(args); err == nil && len(t.Refs) > 0 && (l.all || l.selector != "") {
			return errChosen
		}
		return run(cmd, args)
	}
	return cmd
}

// list prints the workloads that use idalloc.
func (l *lister) list(ctx context.Context, t commands.Targets, o *commands.Output, out, errs io.Writer) error {
	s, namespace, err := l.connect()
	if err != nil {
		return err
	}
	if l.all {
		namespace = ""
	}
	refs, failed := inspect.Workloads(ctx, s, namespace, l.selector, t.Kinds...)
	items, rows := make([]commands.Item, 0, len(refs)), make([][]string, 0, len(refs))
	for _, ref := range refs {
		v, err := inspect.Read(ctx, s, ref)
		if errors.Is(err, request.ErrGone) {
			continue
		}
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		items = append(items, commands.Item{About: ref, Kind: "Slots", Data: v})
		row := summary(ref, v)
		if l.all {
			row = append([]string{ref.Namespace}, row...)
		}
		rows = append(rows, row)
	}
	if !o.ForPeople() {
		return errors.Join(o.Items(out, true, items...), failed)
	}
	if len(rows) == 0 && failed == nil {
		where := "in namespace " + namespace
		if l.all {
			where = "in the cluster"
		}
		_, err := fmt.Fprintf(errs, "no workload %s uses idalloc\n", where)
		return err
	}
	if len(rows) == 0 {
		return failed
	}
	columns := inspect.Columns{Always: []string{"NAME", "HELD", "WAITING", "CHANGING", "DEAD"}}
	if l.all {
		columns.Always = append([]string{"NAMESPACE"}, columns.Always...)
	}
	return errors.Join(o.Table(out, columns, rows), failed)
}

// summary returns a workload's row of the list.
func summary(ref kinds.Ref, v inspect.View) []string {
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
		default: // no pod has it
		}
	}
	return []string{commands.NameOf(ref), fmt.Sprintf("%d/%d", held, v.Count), strconv.Itoa(len(v.Waiting)), strconv.Itoa(changing), strconv.Itoa(dead)}
}
