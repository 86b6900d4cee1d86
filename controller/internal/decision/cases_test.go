package decision

import (
	"cmp"
	"fmt"
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
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
)

// The cases in testdata are what the controller decides, by example. testdata/README.md says how to read and how to write them.
func TestCases(t *testing.T) {
	cases.Run(t, func(*testing.T) func(*testing.T, *datadriven.TestData) string {
		var setup World
		return func(t *testing.T, d *datadriven.TestData) string {
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
		}
	})
}

func now() time.Time { return time.UnixMilli(1795219200123).UTC() }

// read reads a line of a case.
func (w *World) read(line string) error {
	first, rest, _ := strings.Cut(line, " ")
	switch first {
	case "owner":
		return w.readOwner(rest)
	case "map":
		return readSlots(&w.Owner.State.Slots, rest)
	case "requests":
		return readSlots(&w.Owner.State.Handover, rest)
	case "partitions":
		return w.readPartitions(rest)
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
	case "former": // pods come from these owners
		w.Former = strings.Fields(rest)
		return nil
	case "covers": // the list was about these former owners, too
		w.Owners = strings.Fields(rest)
		return nil
	case "rests":
		w.Rests = true
		return nil
	case "keeps":
		w.Keeps = true
		return nil
	case "asked":
		for word := range strings.FieldsSeq(rest) {
			id, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			w.Asked = append(w.Asked, id)
		}
		return nil
	case "settled": // the count will have stood still for long enough
		left, err := time.ParseDuration(strings.TrimPrefix(rest, "in "))
		w.SettledAt = now().Add(left)
		return err
	case "free": // an id, since its pod ended, or every other id, since the controller started
		id, ago, _ := strings.Cut(rest, " ")
		long, err := time.ParseDuration(ago)
		if n, wrong := strconv.Atoi(id); wrong == nil {
			w.Ends.At = map[int]time.Time{n: now().Add(-long)}
		} else {
			w.Ends.Since = now().Add(-long)
		}
		return err
	case "quiet": // no older pod was removed for so long
		long, err := time.ParseDuration(strings.TrimPrefix(rest, "for "))
		w.QuietSince = now().Add(-long)
		return err
	}
	return fmt.Errorf("unknown word %q", first)
}

func readSlots(to *assignment.Slots, text string) error {
	*to = assignment.Slots{}
	for entry := range strings.FieldsSeq(text) {
		id, name, _ := strings.Cut(entry, "=")
		n, err := strconv.Atoi(id)
		if err != nil {
			return err
		}
		(*to)[n] = name
	}
	return nil
}

// readPartitions reads how many there are, and which ids have which of them.
func (w *World) readPartitions(text string) (err error) {
	count, owners, _ := strings.Cut(text, " ")
	wish := assignment.Wish{HasCount: true}
	if wish.Count, err = strconv.Atoi(count); err != nil {
		return err
	}
	row := assignment.Row{Count: wish.Count, Strategy: placement.DefaultName, Owners: placement.Owners{}}
	for entry := range strings.FieldsSeq(owners) {
		id, set, _ := strings.Cut(entry, "=")
		n, err := strconv.Atoi(id)
		if err != nil {
			return err
		}
		if row.Owners[n], err = placement.Parse(set, wish.Count); err != nil {
			return err
		}
	}
	w.Owner.Wish, w.Owner.State.Row = wish, &row
	return nil
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
		case "turns":
			o.Turns, err = strconv.Atoi(rest)
		case "reuse-after":
			o.ReuseAfter, err = time.ParseDuration(rest)
		case "evicts":
			o.Evicts = true
		case "current":
			o.Revision = rest
		case "frozen":
			o.Frozen = rest
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
	p := Pod{ReadsStartCount: true, Pod: proposal.Pod{
		Name: name, UID: "uid-" + name, Created: now().Add(-time.Second), Controller: "new", Owned: true, Ordinal: proposal.NoOrdinal,
		Receipt: receipt.Receipt{Share: receipt.Nothing()},
	}, Assigned: true, Gated: true, Version: "7", Proposal: receipt.Proposal{Share: receipt.Nothing()}}
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
		p.Receipt.State, p.Receipt.Begun, p.Text, p.Receipt.Write = receipt.Locks, begun, "bytes of "+p.Name, "w-"+p.Name
		p.Receipt.Share.ID, err = strconv.Atoi(rest)
	}
	flags := map[string]*bool{
		"hidden": &p.Hidden, "other-gates": &p.OtherGates, "newer": &p.Newer, "hands-over": &p.Receipt.HandsOver, "strict": &p.Receipt.Strict, "settled": &p.Settled,
		"condemned": &p.Condemned, "stood-back": &p.StoodBack, "refused": &p.Refused, "older": &p.Older,
	}
	if flag := flags[first]; flag != nil {
		*flag = true
		return nil
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
		if rest != "" { // its grace period ends then
			var left time.Duration
			left, err = time.ParseDuration(strings.TrimPrefix(rest, "for "))
			p.Deadline = now().Add(left)
		}
	case "lost": // it has been Terminating for its grace period
		p.Terminating, p.LostAt = true, now()
	case "token":
		p.Receipt.Token, err = strconv.ParseInt(rest, 10, 64)
	case "under": // it began for that owner
		kind, name, _ := strings.Cut(rest, "/")
		p.Under = identity.Owner{APIVersion: "apps/v1", Kind: kind, Name: name}
		v := view{w: *w}
		if is := (&pod{Pod: *p, begun: p.Receipt.Begun, id: p.Receipt.Share.ID, token: p.Receipt.Token}); is.begun {
			p.Published, _ = v.published(is, "5")
		}
	case "idless": // its receipt and its id were removed
		p.Receipt, p.Text, p.ID = receipt.Receipt{Share: receipt.Nothing()}, "", ""
	case "ordinal":
		p.Ordinal, err = strconv.Atoi(rest)
	case "failed": // its program ended soon after it had got a slot
		p.Receipt.State, p.Receipt.Rank = receipt.Waits, 2
	case "gave-up":
		p.Receipt.State, p.Receipt.Rank = receipt.GaveUp, max(1, p.Receipt.Rank)
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
		p.Published, p.Receipt.Token = v.published(&pod{Pod: *p, begun: true, id: p.Receipt.Share.ID}, "5")
	case "locked-again": // its receipt was removed, and written again
		p.Receipt.Begun = false
	case "unlocked": // its receipt was removed
		p.Receipt, p.Text = receipt.Receipt{Share: receipt.Nothing()}, ""
	case "wordless": // what its container reads was removed
		p.Published = Published{}
	case "copied": // its annotations say that it has begun, and its gate that it has not
		p.ID, p.Count = rest, "9"
	case "told":
		p.Count, p.StartCount = rest, rest
	case "no-gate":
		p.Gated, p.Placed = false, true
	default:
		return w.agentWord(p, first, rest)
	}
	return err
}

// agentWord reads a word about an agent, or about a changed count.
func (w *World) agentWord(p *Pod, first, rest string) (err error) {
	switch first {
	case "restart", "replace": // when the count changes, and its containers started with that one
		p.OnCount, p.StartCount = first, rest
	case "asks": // for a machine number from this one on
		if p.BadNumber = rest == "nonsense"; !p.BadNumber {
			p.FirstNumber, err = strconv.Atoi(rest)
		}
	case "forged": // another program wrote that number into its receipt
		p.Receipt.Number, err = strconv.Atoi(rest)
	case "number": // it locks that one
		if p.Receipt.Number, err = strconv.Atoi(rest); p.Receipt.Begun {
			v := view{w: *w}
			p.Published, _ = v.published(&pod{Pod: *p, begun: true, id: p.Receipt.Share.ID, was: identity.Identity{ID: receipt.NoID}}, "5")
		}
	case "bound": // it waits no longer for a stable count
		var left time.Duration
		left, err = time.ParseDuration(strings.TrimPrefix(rest, "in "))
		p.SettledAt = now().Add(left)
	case "turn": // it began then
		p.Turn = rest
	case "watcher":
		p.Watcher, p.Program, _ = strings.Cut(rest, " ")
	case "agent":
		p.Assigned, p.Gated, p.Agent = false, false, true
	case "moved": // it locks that id of another owner
		err = w.word(p, "locks", rest)
		p.Former, p.Receipt = p.Receipt, receipt.Receipt{Share: receipt.Nothing()}
		p.Pod = p.Moved()
	case "on": // these partitions
		set, of, _ := strings.Cut(rest, " of ")
		if p.Receipt.Share.Of, err = strconv.Atoi(of); err == nil {
			p.Receipt.Share.Partitions, err = placement.Parse(set, placement.MaxCount)
		}
	case "was-confirmed", "confirmed", "informed":
		p.Told, p.Proposal = true, receipt.Proposal{UID: p.UID, Owner: w.Owner.Owner, Count: w.Owner.Count, Share: p.Receipt.Share}
		switch first {
		case "informed":
			if rest == "" {
				break
			}
			p.Proposal.Shared = true
			share, yield, _ := strings.Cut(rest, " yield ")
			if p.Proposal.Share.Partitions, err = placement.Parse(share, placement.MaxCount); err == nil {
				p.Proposal.Yield, err = placement.Parse(yield, placement.MaxCount)
			}
		case "confirmed":
			p.Proposal.Confirmed = &receipt.Confirmed{Write: p.Receipt.Write, Share: p.Receipt.Share}
		case "was-confirmed":
			p.Proposal.Confirmed = &receipt.Confirmed{Write: "earlier", Share: p.Receipt.Share}
			if rest != "" {
				p.Proposal.Confirmed.Share.Partitions, err = placement.Parse(rest, placement.MaxCount)
			}
		}
	default:
		err = fmt.Errorf("unknown word %q", first)
	}
	return err
}

// readListed reads which locks T3 shows: POD=ID or POD=ID/PARTITIONS, with a star behind the id if its bytes are others, with ? for partitions that cannot
// be read, and with an exclamation mark at the end if the pod is strict and has outlived its grace period. Nothing stands for no lock at all.
func (w *World) readListed(text string) error {
	w.Locks = []Lock{}
	for entry := range strings.FieldsSeq(text) {
		name, id, _ := strings.Cut(entry, "=")
		id, overdue := strings.CutSuffix(id, "!")
		id, partitions, _ := strings.Cut(id, "/")
		id, machine, _ := strings.Cut(id, "#")
		l := Lock{Pod: name, UID: "uid-" + name, Text: "bytes of " + name, Version: "6", Runs: receipt.NoID}
		number, others := strings.CutSuffix(id, "*")
		if others {
			l.Text = "other bytes"
		}
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		l.Receipt = receipt.Receipt{State: receipt.Locks, Share: receipt.Share{ID: n}}
		if l.Receipt.Number, err = strconv.Atoi(cmp.Or(machine, "0")); err != nil {
			return err
		}
		if partitions == "?" {
			l.Receipt.State = receipt.Unreadable
		} else if l.Receipt.Share.Partitions, err = placement.Parse(partitions, placement.MaxCount); err != nil {
			return err
		}
		l.Overdue, l.Receipt.Strict = overdue, overdue
		w.Locks = append(w.Locks, l)
	}
	return nil
}

// tell returns a decision in words, a line for each thing.
func tell(d Decision) string {
	var b strings.Builder
	if d.Failing {
		b.WriteString("only for pods that failed\n")
	}
	if next := d.Plan.Next; next != nil {
		b.WriteString("map")
		for _, id := range next.Slots.IDs() {
			fmt.Fprintf(&b, " %d=%s", id, next.Slots[id])
		}
		for _, id := range next.Handover.IDs() {
			fmt.Fprintf(&b, ", %s asks for %d", next.Handover[id], id)
		}
		b.WriteString("\n")
		if next.Row != nil {
			fmt.Fprintf(&b, "row %s of %d\n", next.Row.Owners, next.Row.Count)
		}
	}
	for _, t := range d.Take {
		fmt.Fprintf(&b, "take %s %d%s%s%s\n", t.Pod, t.ID, numbered(t.Number), of(t.Under), map[bool]string{true: " again"}[t.Begun])
	}
	if d.Confirm {
		b.WriteString("confirm" + slotsOf(d.Only) + "\n")
	}
	for _, g := range d.Begin {
		fmt.Fprintf(&b, "begin %s %s%s%s of %s%s, %s\n", g.Pod, g.Published.ID, numbered(g.Number), of(g.Under), g.Published.Count, map[bool]string{false: " without a gate"}[g.Gated], brief(g.Published))
	}
	for _, name := range d.Withdraw {
		fmt.Fprintf(&b, "withdraw %s\n", name)
	}
	for _, p := range d.Publish {
		fmt.Fprintf(&b, "publish %s %s of %s%s, %s\n", p.Pod, p.Published.ID, p.Published.Count, starts(p.Published), brief(p.Published))
	}
	for _, p := range d.Propose {
		fmt.Fprintf(&b, "tell %s %s\n", p.Pod, told(p))
	}
	for _, name := range d.Probe {
		fmt.Fprintf(&b, "probe %s\n", name)
	}
	for _, r := range d.Remove {
		fmt.Fprintf(&b, "%s %s %d: %s\n", map[bool]string{true: "evict", false: "delete"}[r.Evict], r.Pod, r.ID, r.Cause)
	}
	for _, x := range d.Waits {
		fmt.Fprintf(&b, "%s waits: %s\n", x.Pod, x.Reason)
	}
	for _, x := range d.Behind {
		fmt.Fprintf(&b, "%s started with %s: %s\n", x.Pod, x.Started, x.Stage)
	}
	if d.After > 0 {
		fmt.Fprintf(&b, "again in %s\n", d.After)
	}
	if b.Len() == 0 {
		return "nothing"
	}
	return b.String()
}

func numbered(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" with number %d", n)
}

// starts tells a start count that is not the count, and the turn of a pod that is to restart.
func starts(w Published) string {
	text := ""
	if w.StartCount != w.Count {
		text = " from " + w.StartCount
	}
	if w.Turn != "" {
		text += " in the turn " + w.Turn
	}
	return text
}

// of names another owner than the workload.
func of(owner string) string {
	if owner == "Deployment/worker" || owner == "StatefulSet/worker" {
		return ""
	}
	return " (" + owner + ")"
}

func brief(w Published) string {
	var id identity.Identity
	if err := id.UnmarshalJSON([]byte(w.Identity)); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("token %d", id.Token)
}

// told returns what a process is told in words.
func told(p Propose) string {
	next, b := p.Next, strings.Builder{}
	if next.Share.Empty() {
		fmt.Fprintf(&b, "of %d: %s", next.Count, next.Why)
	} else if fmt.Fprintf(&b, "%d of %d", next.Share.ID, next.Count); next.Share.Of > 0 {
		fmt.Fprintf(&b, ", partitions %s of %d", next.Share.Partitions, next.Share.Of)
	}
	if !next.Yield.Empty() {
		fmt.Fprintf(&b, ", yield %s", next.Yield)
	}
	if next.Requester != "" {
		fmt.Fprintf(&b, ", %s asks", next.Requester)
	}
	if next.MadeRoom {
		b.WriteString(", others made room")
	}
	switch c := next.Confirmed; {
	case p.Text == "":
	case !c.Slot && c.Partitions.Empty():
		fmt.Fprintf(&b, ", confirmed")
	default:
		fmt.Fprintf(&b, ", refused: %s locks the slot %t, partitions %s", c.By, c.Slot, c.Partitions)
	}
	return b.String()
}

// slotsOf names slots, and nothing if T3 is about all.
func slotsOf(ids []int) string {
	if len(ids) == 0 {
		return ""
	}
	return " " + strings.Trim(fmt.Sprint(ids), "[]")
}
