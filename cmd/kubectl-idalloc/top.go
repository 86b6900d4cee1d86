package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/internal/cli"
	"github.com/idalloc/idalloc/internal/commands"
	"github.com/idalloc/idalloc/internal/inspect"
	"github.com/idalloc/idalloc/internal/sanitise"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/request"
)

type topper struct {
	*global

	all      bool
	selector string
	interval time.Duration
	clock    clock.WithTicker
}

func newTop(g *global) *cobra.Command {
	t := &topper{global: g, clock: clock.RealClock{}}
	cmd := &cobra.Command{
		Use:   "top [KIND/NAME... | KIND[,KIND...]]",
		Short: "Watch slots, holders, hand-overs and partitions live",
		Long: `Shows the slots and the partitions of workloads every two seconds. Of workloads
that you name it also shows each change at once. At a terminal it redraws the
screen, and cuts what does not fit. Elsewhere it prints a line for each change.
Ctrl-C ends it.`,
		Example: `  kubectl idalloc top deployment/worker -n prod
  kubectl idalloc top -A`,
		ValidArgsFunction: g.completeUsers,
		RunE: func(cmd *cobra.Command, args []string) error {
			return t.run(cmd.Context(), args, cmd.OutOrStdout())
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&t.all, "all-namespaces", "A", false, "of all namespaces")
	f.StringVarP(&t.selector, "selector", "l", "", "only workloads that have these labels")
	f.DurationVar(&t.interval, "interval", 2*time.Second, "how often to look, at least 500ms")
	return cmd
}

func (t *topper) run(ctx context.Context, args []string, out io.Writer) error {
	named, err := commands.ParseTargets(args)
	if err != nil {
		return err
	}
	if len(named.Refs) > 0 && (t.all || t.selector != "") {
		return errChosen
	}
	if t.interval < 500*time.Millisecond {
		return cli.Usagef("--interval %s: use 500ms or more", t.interval)
	}
	s, namespace, err := t.connect()
	if err != nil {
		return err
	}
	for k := range named.Refs {
		named.Refs[k].Namespace = namespace
	}
	if t.all {
		namespace = ""
	}
	show := lines(sanitise.Writer(out))
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		show = screen(file)
	}
	var changed <-chan struct{}
	if len(named.Refs) > 0 {
		news, err := inspect.Watch(ctx, s, named.Refs, klog.Background())
		if err != nil {
			return err
		}
		defer news.Close()
		changed = news.Changed
	}
	return t.repeat(ctx, changed, func() error {
		scenes, err := look(ctx, s, namespace, t.selector, named)
		if err == nil {
			err = show(t.clock.Now(), scenes)
		}
		return err
	})
}

// repeat shows the state after each change and after each interval, until ctx ends.
func (t *topper) repeat(ctx context.Context, changed <-chan struct{}, show func() error) error {
	tick := t.clock.NewTicker(t.interval)
	defer tick.Stop()
	for {
		err := show()
		if ctx.Err() != nil {
			return nil // a signal ends the command; that is no error
		}
		if err != nil && !request.Temporary(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed: // never without names: that would need a watch of all pods of the namespace
		case <-tick.C():
		}
	}
}

// scene is the state of a workload at one moment.
type scene struct {
	ref        kinds.Ref
	slots      inspect.View
	partitions inspect.PartitionView
}

// look reads the workloads.
func look(ctx context.Context, s *store.Store, namespace, selector string, named commands.Targets) ([]scene, error) {
	refs := named.Refs
	if len(refs) == 0 {
		var err error
		if refs, err = inspect.Workloads(ctx, s, namespace, selector, named.Kinds...); err != nil {
			return nil, err
		}
	}
	scenes := make([]scene, 0, len(refs))
	for _, ref := range refs {
		slots, err := inspect.Read(ctx, s, ref)
		var partitions inspect.PartitionView
		if err == nil {
			partitions, err = inspect.ReadPartitions(ctx, s, ref)
		}
		switch {
		case errors.Is(err, request.ErrGone) && len(named.Refs) == 0:
		case err != nil:
			return nil, err
		default:
			scenes = append(scenes, scene{ref, slots, partitions})
		}
	}
	return scenes, nil
}

// screen returns a function that draws on a terminal.
func screen(file *os.File) func(time.Time, []scene) error {
	return func(now time.Time, scenes []scene) error {
		var b bytes.Buffer
		if err := draw(sanitise.Writer(&b), now, scenes); err != nil {
			return err
		}
		frame := b.Bytes()
		if _, height, err := term.GetSize(int(file.Fd())); err == nil {
			frame = cut(frame, height-1)
		}
		// The terminal cuts long lines at its edge. Lines are overwritten without clearing them first, which would flicker.
		frame = bytes.ReplaceAll(frame, []byte("\n"), []byte("\x1b[K\n"))
		_, err := file.Write(slices.Concat([]byte("\x1b[?7l\x1b[H"), frame, []byte("\x1b[J\x1b[?7h")))
		return err
	}
}

// cut returns the first lines of a text.
func cut(text []byte, lines int) []byte {
	for k, c := range text {
		if c != '\n' {
			continue
		}
		if lines--; lines <= 0 {
			return text[:k+1]
		}
	}
	return text
}

// draw writes everything that top shows.
func draw(w io.Writer, now time.Time, scenes []scene) error {
	if _, err := fmt.Fprintf(w, "%s  workloads: %d\n", now.Format(time.TimeOnly), len(scenes)); err != nil {
		return err
	}
	for _, s := range scenes {
		cells := summary(s.ref, s.slots)
		if _, err := fmt.Fprintf(w, "\n%s in %s: held %s, waiting %s, changing %s, dead %s\n", cells[0], s.ref.Namespace, cells[1], cells[2], cells[3], cells[4]); err != nil {
			return err
		}
		if len(s.slots.Waiting) > 0 {
			if _, err := fmt.Fprintln(w, "waiting: "+strings.Join(s.slots.Waiting, ", ")); err != nil {
				return err
			}
		}
		for _, slot := range s.slots.Slots {
			if slot.Requester == "" {
				continue
			}
			if _, err := fmt.Fprintf(w, "hand-over of id %d: %s -> %s\n", slot.ID, slot.Pod, slot.Requester); err != nil {
				return err
			}
		}
		if len(s.slots.Slots) > 0 {
			if err := inspect.SlotColumns().Write(w, s.slots.Rows(now), false, true); err != nil {
				return err
			}
		}
		if len(s.partitions.Ranges) > 0 {
			if err := inspect.PartitionColumns().Write(w, s.partitions.Rows(now), false, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// lines returns a function that writes a line for each slot and each range of partitions that is new, has changed or is gone.
func lines(w io.Writer) func(time.Time, []scene) error {
	known := map[string]string{} // the last lines, by what they are about
	return func(now time.Time, scenes []scene) error {
		is, said := map[string]string{}, []string(nil)
		see := func(key, line string) {
			if is[key] = line; known[key] != line {
				said = append(said, line)
			}
		}
		for _, s := range scenes {
			at := s.ref.Namespace + " " + commands.NameOf(s.ref)
			for _, slot := range s.slots.Slots {
				c := slot.Cells(now)
				line := fmt.Sprintf("%s id %s: %s %s", at, c[0], c[4], c[1])
				if slot.Requester != "" {
					line += " -> " + slot.Requester
				}
				see(at+" id "+c[0], line)
			}
			for _, r := range s.partitions.Ranges {
				c := r.Cells(now)
				key := c[0]
				if key == "-" { // the pod is paused
					key = "id " + c[1]
				}
				see(at+" partitions "+key, fmt.Sprintf("%s partitions %s: %s %s of id %s", at, c[0], c[3], c[2], c[1]))
			}
		}
		for _, key := range slices.Sorted(maps.Keys(known)) {
			if _, still := is[key]; !still {
				said = append(said, key+": gone")
			}
		}
		known = is
		for _, line := range said {
			if _, err := fmt.Fprintf(w, "%s %s\n", now.Format(time.TimeOnly), line); err != nil {
				return err
			}
		}
		return nil
	}
}
