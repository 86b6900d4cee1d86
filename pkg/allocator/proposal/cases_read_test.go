package proposal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
)

// scene is the input of a plan as the lines of a case tell it.
type scene struct {
	in Input
	// room is how many bytes are left on the owner, nil where there is room for everything.
	room *int
	// joins says that the planner, or each id with the controller, has held its id for long enough.
	joins bool
}

func newScene() scene { return scene{in: Input{Now: t0}} }

// clone returns a scene that later lines can change. They replace maps and pods as a whole.
func (s scene) clone() scene {
	if s.in.Now.IsZero() {
		return newScene()
	}
	s.in.Pods = slices.Clone(s.in.Pods)
	return s
}

// read takes in the lines of a case, short ones from its command.
func (s *scene) read(short []datadriven.CmdArg, text string) error {
	lines := s.lines()
	for _, arg := range short {
		if err := lines.read(arg.Key + " " + strings.Join(arg.Vals, " ")); err != nil {
			return err
		}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := lines.read(line); err != nil {
			return err
		}
	}
	return nil
}

// ofEntry stands in a receipt for the slot of the pod's entry.
const ofEntry = receipt.MaxID + 1

// input returns what the scene says as Plan wants it.
func (s *scene) input(sweep bool) (Input, error) {
	in := s.in
	if sweep {
		in.Me = ""
	} else if in.Me == "" && !in.Central {
		return in, errors.New("no line says which pod plans: me NAME")
	}
	in.Pods, in.Partitions.Joins = slices.Clone(in.Pods), map[int]bool{}
	for i := range in.Pods {
		p := &in.Pods[i]
		if id, ok := in.State.Slots.Of(p.Name); p.Receipt.Share.ID == ofEntry {
			if p.Receipt.Share.ID = id; !ok {
				return in, fmt.Errorf("the receipt of %s is for its entry, and it has none", p.Name)
			}
		}
		in.Partitions.Joins[p.Receipt.Slot()] = s.joins && (in.Central || p.Name == in.Me)
	}
	if s.room != nil {
		in.Room = full(in.State, *s.room)
	}
	return in, nil
}

func (s *scene) lines() words {
	in := &s.in
	return words{
		"count":         number(&in.Count),
		"map":           slotsTo(&in.State.Slots),
		"requests":      slotsTo(&in.State.Handover),
		"room":          func(rest string) error { s.room = new(int); return number(s.room)(rest) },
		"pod":           s.readPods,
		"pods":          s.readPods,
		"gone":          s.readGone,
		"wants":         s.readWants,
		"vacant":        s.readVacant,
		"at once":       just(func() { in.Partitions.AtOnce = true }),
		"not at once":   just(func() { in.Partitions.AtOnce = false }),
		"partitions":    s.readPartitions,
		"no partitions": just(func() { in.State.Row = nil }),
		"me":            s.readMe,
		"controller":    s.readController,
	}
}

func (s *scene) readPods(rest string) error {
	names, is, described := strings.Cut(rest, ":")
	for name := range strings.FieldsSeq(names) {
		p := pod(name, 1)
		if described {
			if err := podWords(&p).parts(is); err != nil {
				return err
			}
		}
		s.in.Pods = append(slices.DeleteFunc(s.in.Pods, func(o Pod) bool { return o.Name == name }), p)
	}
	return nil
}

func (s *scene) readGone(rest string) error {
	for name := range strings.FieldsSeq(rest) {
		before := len(s.in.Pods)
		if s.in.Pods = slices.DeleteFunc(s.in.Pods, func(o Pod) bool { return o.Name == name }); len(s.in.Pods) == before {
			return fmt.Errorf("there is no pod %s", name)
		}
	}
	return nil
}

// readPartitions reads the row: COUNT STRATEGY, and who owns what, ID=SET.
func (s *scene) readPartitions(rest string) error {
	count, strategy, owners, err := readRow(rest)
	if strategy == "" {
		return cmp.Or(err, errors.New("how many partitions, and by which strategy?"))
	}
	s.in.State.Row = &assignment.Row{Count: count, Strategy: strategy, Owners: owners}
	return err
}

// readWants reads what the user wants: COUNT or COUNT STRATEGY, and for external a target, ID=SET.
func (s *scene) readWants(rest string) (err error) {
	wish := assignment.Wish{HasCount: true}
	wish.Count, wish.Strategy, wish.Target, err = readRow(rest)
	s.in.Partitions.Wish = wish
	return err
}

func readRow(rest string) (count int, strategy string, owners placement.Owners, err error) {
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0, "", nil, errors.New("how many partitions?")
	}
	if len(fields) > 1 {
		strategy = fields[1]
	}
	if err := number(&count)(fields[0]); err != nil {
		return 0, "", nil, err
	}
	owners = placement.Owners{}
	for _, entry := range fields[min(2, len(fields)):] {
		id, set, _ := strings.Cut(entry, "=")
		n, err := strconv.Atoi(id)
		if err != nil {
			return 0, "", nil, err
		}
		if owners[n], err = readSet(set); err != nil {
			return 0, "", nil, err
		}
	}
	return count, strategy, owners, nil
}

func (s *scene) readVacant(rest string) error {
	s.in.Partitions.Vacant = map[int]string{}
	for text := range strings.FieldsSeq(rest) {
		id, err := strconv.Atoi(text)
		if err != nil {
			return err
		}
		s.in.Partitions.Vacant[id] = s.in.State.Slots[id]
	}
	return nil
}

func (s *scene) readMe(rest string) error {
	in := &s.in
	in.Rollout, in.FreeFor, in.StandsBack, s.joins = Rollout{}, 0, false, false
	name, is, described := strings.Cut(rest, ":")
	if in.Me = name; !described {
		return nil
	}
	return words{
		"current revision": just(func() { in.Rollout.Current = true }),
		"max unavailable":  number(&in.Rollout.MaxUnavailable),
		"available":        number(&in.Rollout.Available),
		"too early to ask": just(func() { in.StandsBack = true }),
		"slot free for":    duration(&in.FreeFor),
		"joins":            just(func() { s.joins = true }),
	}.parts(is)
}

// readController has the controller plan. The current revision is that of pods without other words, unless it is unknown.
func (s *scene) readController(rest string) error {
	in := &s.in
	in.Me, in.Central, in.Revision, in.Rollout, in.FreeFor, s.joins, in.Partitions.Gathers = "", true, "rs-1", Rollout{}, 0, false, false
	if rest == "" {
		return nil
	}
	return words{
		"current revision": just(func() { in.Rollout.Current = true }),
		"knows none":       just(func() { in.Revision = "" }),
		"slot free for":    duration(&in.FreeFor),
		"joins":            just(func() { s.joins = true }),
		"gathers":          just(func() { in.Partitions.Gathers = true }),
		"max unavailable":  number(&in.Rollout.MaxUnavailable),
		"available":        number(&in.Rollout.Available),
	}.parts(rest)
}

// podWords say what the pod is, and what its receipt says.
func podWords(p *Pod) words {
	r := &p.Receipt
	return words{
		"age": func(rest string) error {
			var age time.Duration
			err := duration(&age)(rest)
			p.Created = t0.Add(-age)
			return err
		},
		"revision":      func(rest string) error { p.Controller = rest; return nil },
		"no controller": just(func() { p.Controller = "" }),
		"relabelled":    just(func() { p.Owned = false }),
		"foreign":       just(func() { p.Foreign = true }),
		"terminating":   just(func() { p.Terminating, p.Deadline = true, t0 }),
		"grace": func(rest string) error {
			var left time.Duration
			err := duration(&left)(rest)
			p.Deadline = t0.Add(left)
			return err
		},
		"ordinal":    number(&p.Ordinal),
		"gated":      just(func() { p.Gated = true }),
		"agent":      just(func() { p.Central = true }),
		"stood back": just(func() { p.StoodBack = true }),
		"condemned":  just(func() { p.Condemned = true }),
		"receipt":    func(rest string) error { r.State = receipt.Locks; return readSlot(r, rest, ofEntry) },
		"unreadable": func(rest string) error { r.State = receipt.Unreadable; return readSlot(r, rest, receipt.NoID) },
		"hands over": just(func() { r.HandsOver = true }),
		"strict":     just(func() { r.Strict = true }),
		"waits":      just(func() { r.State = receipt.Waits }),
		"gave up":    just(func() { r.State, r.Rank = receipt.GaveUp, max(r.Rank, 1) }),
		"rank":       number(&r.Rank),
		"works on":   func(rest string) error { return readWork(r, rest) },
	}
}

func readSlot(r *receipt.Receipt, rest string, none int) error {
	if r.Share.ID = none; rest == "" {
		return nil
	}
	return number(&r.Share.ID)(rest)
}

// readWork reads a set, or "nothing", and how many partitions the receipt says that there are.
func readWork(r *receipt.Receipt, rest string) (err error) {
	set, of, more := strings.Cut(rest, " of ")
	if r.Share.Of = 8; more {
		if err := number(&r.Share.Of)(of); err != nil {
			return err
		}
	}
	r.Share.Partitions, err = readSet(strings.Replace(set, "nothing", "", 1))
	return err
}

// readSet reads a set of partitions. Its ranges are joined by a plus, because commas separate words.
func readSet(text string) (placement.Set, error) {
	return placement.Parse(strings.ReplaceAll(text, "+", ","), placement.MaxCount)
}

// words are what a line or a part of it may begin with, and how the rest of it is read.
type words map[string]func(rest string) error

func (w words) read(text string) error {
	for first, read := range w {
		if rest, ok := strings.CutPrefix(text+" ", first+" "); ok {
			return read(strings.TrimSpace(rest))
		}
	}
	return fmt.Errorf("unknown words %q", text)
}

// parts reads what is separated by commas.
func (w words) parts(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		if err := w.read(strings.TrimSpace(part)); err != nil {
			return err
		}
	}
	return nil
}

func slotsTo(to *slots) func(string) error {
	return func(rest string) error {
		*to = slots{}
		for entry := range strings.FieldsSeq(rest) {
			text, name, ok := strings.Cut(entry, "=")
			id, err := strconv.Atoi(text)
			if _, twice := (*to)[id]; !ok || err != nil || twice {
				return fmt.Errorf("%q is no SLOT=POD, or its slot is there twice", entry)
			}
			(*to)[id] = name
		}
		return nil
	}
}

// just is for words that nothing follows.
func just(do func()) func(string) error {
	return func(rest string) error {
		if rest != "" {
			return fmt.Errorf("unknown words %q", rest)
		}
		do()
		return nil
	}
}

func number(to *int) func(string) error {
	return func(rest string) (err error) { *to, err = strconv.Atoi(rest); return err }
}

func duration(to *time.Duration) func(string) error {
	return func(rest string) (err error) { *to, err = time.ParseDuration(rest); return err }
}
