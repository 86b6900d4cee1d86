package heart

import (
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/proposal"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/identity"
)

// The cases in testdata are what the controller decides, by example. testdata/README.md says how to read and how to write them.
func TestCases(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no cases: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			var setup World
			datadriven.RunTest(t, file, func(t *testing.T, d *datadriven.TestData) string {
				t.Helper()
				w := setup
				if d.Cmd == "setup" {
					w = World{}
				}
				w.Pods, w.Now = slices.Clone(w.Pods), now()
				for line := range strings.Lines(d.Input) {
					if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
						continue
					}
					if err := w.read(line); err != nil {
						d.Fatalf(t, "%s: %v", line, err)
					}
				}
				if d.Cmd == "setup" {
					setup = w
					return ""
				}
				return tell(Decide(w))
			})
		})
	}
}

func now() time.Time { return time.UnixMilli(1795219200123).UTC() }

// read takes in a line of a case.
func (w *World) read(line string) error {
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case "owner":
		return w.readOwner(rest)
	case "map":
		w.Owner.State.Slots = assignment.Slots{}
		for entry := range strings.FieldsSeq(rest) {
			id, name, _ := strings.Cut(entry, "=")
			n, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			w.Owner.State.Slots[n] = name
		}
		return nil
	case "pod", "pods":
		names, is, _ := strings.Cut(rest, ":")
		for name := range strings.FieldsSeq(names) {
			p, err := w.pod(name, is)
			if err != nil {
				return err
			}
			w.Pods = append(slices.DeleteFunc(w.Pods, func(o Pod) bool { return o.Name == name }), p)
		}
		return nil
	case "gone":
		w.Pods = slices.DeleteFunc(w.Pods, func(o Pod) bool { return slices.Contains(strings.Fields(rest), o.Name) })
		return nil
	case "listed":
		return w.readListed(rest)
	}
	return fmt.Errorf("unknown word %q", first)
}

// readOwner reads a Deployment whose current revision is "new", unless the words say more.
func (w *World) readOwner(text string) error {
	o := Owner{
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: "worker"}, Namespace: "shop", State: w.Owner.State,
		Revision: "new", Replaces: true, Limit: 1,
	}
	for part := range strings.SplitSeq(text, ",") {
		var err error
		switch first, rest, _ := strings.Cut(strings.TrimSpace(part), " "); first {
		case "count":
			o.Count, err = strconv.Atoi(rest)
		case "kind":
			o.Kind, o.Replaces, o.Revision = rest, false, "new"
		case "blocks":
			o.Blocks = true
		case "paused":
			o.Paused = true
		case "limit":
			o.Limit, err = strconv.Atoi(rest)
		case "current":
			o.Revision = rest
		default:
			err = fmt.Errorf("unknown word %q", first)
		}
		if err != nil {
			return err
		}
	}
	w.Owner = o
	return nil
}

// pod is of the current revision, assigned to the controller, and gated, unless the words say more.
func (w *World) pod(name, text string) (Pod, error) {
	p := Pod{Pod: proposal.Pod{
		Name: name, UID: "uid-" + name, Created: now().Add(-time.Second), Controller: "new", Owned: true, Ordinal: proposal.NoOrdinal,
		Receipt: receipt.Receipt{Share: receipt.Nothing()},
	}, Assigned: true, Gated: true, Version: "7"}
	for part := range strings.SplitSeq(text, ",") {
		first, rest, _ := strings.Cut(strings.TrimSpace(part), " ")
		if err := w.word(&p, first, rest); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (w *World) word(p *Pod, first, rest string) (err error) {
	lock := func(begun bool) {
		p.Receipt.State, p.Receipt.Begun, p.Text = receipt.Locks, begun, "bytes of "+p.Name
		p.Receipt.Share.ID, err = strconv.Atoi(rest)
	}
	switch first {
	case "":
	case "old":
		p.Controller = "old"
	case "released": // it was relabelled, so no object controls it
		p.Controller, p.Owned = "", false
	case "elsewhere": // another object controls it, and its receipt is for that owner
		p.Controller, p.Owned, p.Receipt = "other", false, receipt.Receipt{Share: receipt.Nothing()}
	case "peer":
		p.Assigned, p.Gated = false, false
	case "age":
		var age time.Duration
		age, err = time.ParseDuration(rest)
		p.Created = now().Add(-age)
	case "ready":
		p.Ready, p.AvailableAt = true, now()
	case "available-in":
		var left time.Duration
		left, err = time.ParseDuration(rest)
		p.Ready, p.AvailableAt = true, now().Add(left)
	case "terminating":
		p.Terminating = true
	case "ordinal":
		p.Ordinal, err = strconv.Atoi(rest)
	case "failed": // its program ended soon after it had got a slot
		p.Receipt.State, p.Receipt.Rank = receipt.Waits, 2
	case "waits":
		p.Receipt.State = receipt.Waits
	case "unreadable":
		p.Receipt.State, p.Text = receipt.Unreadable, "bytes of "+p.Name
	case "locks":
		lock(false)
	case "runs": // as Begin leaves it
		lock(true)
		p.Gated, p.Placed = false, true
		v := view{w: *w}
		words := v.words(&pod{Pod: *p, runs: true, id: p.Receipt.Share.ID}, "5", false)
		p.ID, p.Count, p.Identity = words.ID, words.Count, words.Identity
	case "hidden":
		p.Hidden = true
	case "unlocked": // its receipt was removed
		p.Receipt, p.Text = receipt.Receipt{Share: receipt.Nothing()}, ""
	case "copied": // its annotations say that it has begun, and its gate that it has not
		p.ID, p.Count = rest, "9"
	case "told":
		p.Count = rest
	case "other-gates":
		p.OtherGates = true
	case "no-gate":
		p.Gated, p.Placed = false, true
	default:
		err = fmt.Errorf("unknown word %q", first)
	}
	return err
}

// readListed reads which locks T3 shows: POD=ID, with a star behind it if its bytes are others. Nothing stands for no lock at all.
func (w *World) readListed(text string) error {
	w.Locks = []Lock{}
	for entry := range strings.FieldsSeq(text) {
		name, id, _ := strings.Cut(entry, "=")
		l := Lock{Pod: name, UID: "uid-" + name, Text: "bytes of " + name, Version: "6"}
		number, others := strings.CutSuffix(id, "*")
		if others {
			l.Text = "other bytes"
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		l.Receipt = receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: n}}
		w.Locks = append(w.Locks, l)
	}
	return nil
}

// tell returns a decision in words, a line for each thing.
func tell(d Decision) string {
	var b strings.Builder
	if next := d.Plan.Next; next != nil {
		b.WriteString("map")
		for _, id := range next.Slots.IDs() {
			fmt.Fprintf(&b, " %d=%s", id, next.Slots[id])
		}
		b.WriteString("\n")
	}
	for _, t := range d.Take {
		fmt.Fprintf(&b, "take %s %d%s\n", t.Pod, t.ID, map[bool]string{true: " again"}[t.Begun])
	}
	if d.Confirm {
		b.WriteString("confirm\n")
	}
	for _, g := range d.Begin {
		fmt.Fprintf(&b, "begin %s %s of %s%s, %s\n", g.Pod, g.Words.ID, g.Words.Count, map[bool]string{false: " without a gate"}[g.Gated], brief(g.Words))
	}
	for _, name := range d.Withdraw {
		fmt.Fprintf(&b, "withdraw %s\n", name)
	}
	for _, p := range d.Publish {
		fmt.Fprintf(&b, "publish %s %s of %s, %s\n", p.Pod, p.Words.ID, p.Words.Count, brief(p.Words))
	}
	for _, r := range d.Remove {
		fmt.Fprintf(&b, "%s %s %d: %s\n", map[bool]string{true: "evict", false: "delete"}[r.Evict], r.Pod, r.ID, r.Cause)
	}
	for _, x := range d.Waits {
		fmt.Fprintf(&b, "%s waits: %s\n", x.Pod, x.Reason)
	}
	if d.After > 0 {
		fmt.Fprintf(&b, "again in %s\n", d.After)
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

func brief(w Words) string {
	var id identity.Identity
	if err := id.UnmarshalJSON([]byte(w.Identity)); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("token %d", id.Token)
}
