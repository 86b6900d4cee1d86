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
	"github.com/idalloc/idalloc/test/cases"
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
		if err := lines.Read(arg.Key + " " + strings.Join(arg.Vals, " ")); err != nil {
			return err
		}
	}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := lines.Read(line); err != nil {
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

func (s *scene) lines() cases.Terms {
	in := &s.in
	return cases.Terms{
		"count":         cases.Number(&in.Count),
		"map":           slotsTo(&in.State.Slots),
		"requests":      slotsTo(&in.State.Handover),
		"room":          func(rest string) error { s.room = new(int); return cases.Number(s.room)(rest) },
		"pod":           s.readPods,
		"pods":          s.readPods,
		"gone":          s.readGone,
		"wants":         s.readWants,
		"vacant":        s.readVacant,
		"at once":       cases.Just(func() { in.Partitions.AtOnce = true }),
		"not at once":   cases.Just(func() { in.Partitions.AtOnce = false }),
		"partitions":    s.readPartitions,
		"no partitions": cases.Just(func() { in.State.Row = nil }),
		"me":            s.readMe,
		"controller":    s.readController,
	}
}

func (s *scene) readPods(rest string) error {
	names, is, described := strings.Cut(rest, ":")
	for name := range strings.FieldsSeq(names) {
		p := pod(name, 1)
		if described {
			if err := podWords(&p).Parts(is); err != nil {
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
	if err := cases.Number(&count)(fields[0]); err != nil {
		return 0, "", nil, err
	}
	owners = placement.Owners{}
	err = cases.Pairs(strings.Join(fields[min(2, len(fields)):], " "), func(id int, set string) (err error) {
		owners[id], err = readSet(set)
		return err
	})
	return count, strategy, owners, err
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
	return cases.Terms{
		"current revision": cases.Just(func() { in.Rollout.Current = true }),
		"max unavailable":  cases.Number(&in.Rollout.MaxUnavailable),
		"available":        cases.Number(&in.Rollout.Available),
		"too early to ask": cases.Just(func() { in.StandsBack = true }),
		"slot free for":    duration(&in.FreeFor),
		"joins":            cases.Just(func() { s.joins = true }),
	}.Parts(is)
}

// readController has the controller plan. The current revision is that of pods without other words, unless it is unknown.
func (s *scene) readController(rest string) error {
	in := &s.in
	in.Me, in.Central, in.Revision, in.Rollout, in.FreeFor, s.joins, in.Partitions.Gathers = "", true, "rs-1", Rollout{}, 0, false, false
	if rest == "" {
		return nil
	}
	return cases.Terms{
		"current revision": cases.Just(func() { in.Rollout.Current = true }),
		"knows none":       cases.Just(func() { in.Revision = "" }),
		"slot free for":    duration(&in.FreeFor),
		"joins":            cases.Just(func() { s.joins = true }),
		"gathers":          cases.Just(func() { in.Partitions.Gathers = true }),
		"max unavailable":  cases.Number(&in.Rollout.MaxUnavailable),
		"available":        cases.Number(&in.Rollout.Available),
	}.Parts(rest)
}

// podWords say what the pod is, and what its receipt says.
func podWords(p *Pod) cases.Terms {
	r := &p.Receipt
	return cases.Terms{
		"age":           func(rest string) error { return cases.Moment(t0, &p.Created)("-" + rest) },
		"revision":      cases.Text(&p.Controller),
		"no controller": cases.Just(func() { p.Controller = "" }),
		"relabelled":    cases.Just(func() { p.Owned = false }),
		"foreign":       cases.Just(func() { p.Foreign = true }),
		"terminating":   cases.Just(func() { p.Terminating, p.Deadline = true, t0 }),
		"grace":         cases.Moment(t0, &p.Deadline),
		"ordinal":       cases.Number(&p.Ordinal),
		"gated":         cases.Just(func() { p.Gated = true }),
		"agent":         cases.Just(func() { p.Central = true }),
		"stood back":    cases.Just(func() { p.StoodBack = true }),
		"condemned":     cases.Just(func() { p.Condemned = true }),
		"receipt":       func(rest string) error { r.State = receipt.Locks; return readSlot(r, rest, ofEntry) },
		"unreadable":    func(rest string) error { r.State = receipt.Unreadable; return readSlot(r, rest, receipt.NoID) },
		"hands over":    cases.Just(func() { r.HandsOver = true }),
		"strict":        cases.Just(func() { r.Strict = true }),
		"waits":         cases.Just(func() { r.State = receipt.Waits }),
		"gave up":       cases.Just(func() { r.State, r.Rank = receipt.GaveUp, max(r.Rank, 1) }),
		"rank":          cases.Number(&r.Rank),
		"works on":      func(rest string) error { return readWork(r, rest) },
	}
}

func readSlot(r *receipt.Receipt, rest string, none int) error {
	if r.Share.ID = none; rest == "" {
		return nil
	}
	return cases.Number(&r.Share.ID)(rest)
}

// readWork reads a set, or "nothing", and how many partitions the receipt says that there are.
func readWork(r *receipt.Receipt, rest string) (err error) {
	set, of, more := strings.Cut(rest, " of ")
	if r.Share.Of = 8; more {
		if err := cases.Number(&r.Share.Of)(of); err != nil {
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

func slotsTo(to *slots) func(string) error {
	return func(rest string) error {
		*to = slots{}
		return cases.Pairs(rest, func(id int, name string) error {
			if _, twice := (*to)[id]; twice {
				return fmt.Errorf("slot %d is there twice", id)
			}
			(*to)[id] = name
			return nil
		})
	}
}

func duration(to *time.Duration) func(string) error {
	return func(rest string) (err error) { *to, err = time.ParseDuration(rest); return err }
}
