package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/partition/placement"
)

// scene is the input of a plan as the lines of a case tell it.
type scene struct {
	in Input
	// room is how many bytes are left on the owner, nil where there is room for everything.
	room *int
}

func newScene() scene { return scene{in: Input{Now: t0}} }

// clone returns a scene that later lines can change. They replace maps, pods and receipts as a whole.
func (s scene) clone() scene {
	if s.in.Now.IsZero() {
		return newScene()
	}
	s.in.Pods = slices.Clone(s.in.Pods)
	return s
}

// read takes in the lines of a case, short ones from its command. With an error it returns the number of the line that it is in.
func (s *scene) read(short []datadriven.CmdArg, text string) (int, error) {
	lines, n := s.lines(), 0
	for _, arg := range short {
		if err := lines.read(arg.Key + " " + strings.Join(arg.Vals, " ")); err != nil {
			return n, err
		}
	}
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := lines.read(line); err != nil {
			return n, err
		}
	}
	return n, nil
}

// lineOf returns the place of the nth line after a command at "file:line".
func lineOf(command string, n int) string {
	i := strings.LastIndex(command, ":")
	line, err := strconv.Atoi(command[i+1:])
	if err != nil {
		return command
	}
	return command[:i+1] + strconv.Itoa(line+n)
}

// input returns what the scene says as Plan wants it.
func (s *scene) input(sweep bool) (Input, error) {
	if sweep {
		s.in.Me, s.in.Intent, s.in.FenceAfter = "", Claim, 0
	} else if s.in.Me == "" {
		return s.in, errors.New("no line says which pod plans: me NAME")
	}
	if err := s.backEntries(); err != nil {
		return s.in, err
	}
	if s.room != nil {
		s.in.Room = s.roomOf(*s.room)
	}
	return s.in, nil
}

// backEntries finds the slots of receipts that name the slot of their pod's entry.
func (s *scene) backEntries() error {
	s.in.Pods = slices.Clone(s.in.Pods)
	for i := range s.in.Pods {
		p := &s.in.Pods[i]
		if !p.locks() || p.Receipt.ID != ofEntry {
			continue
		}
		id, ok := s.in.State.Slots.Of(p.Name)
		if !ok {
			return fmt.Errorf("the receipt of %s is for its entry, and it has none", p.Name)
		}
		receipt := *p.Receipt
		receipt.ID = id
		p.Receipt = &receipt
	}
	return nil
}

// roomOf returns the room of an owner that has so many bytes left. Where the map is not clean, somebody has removed all of
// it, and they are left when the receipts are restored.
func (s *scene) roomOf(left int) assignment.Room {
	if s.in.Trust == assignment.Clean {
		return full(s.in.State, left)
	}
	restored := assignment.State{Slots: slots{}, UIDs: slots{}, Epoch: s.in.Now.UnixMilli()}
	for _, p := range s.in.Pods {
		if p.locks() {
			restored.Slots[p.Receipt.ID], restored.UIDs[p.Receipt.ID] = p.Name, assignment.ShortUID(p.UID)
		}
	}
	others := full(restored, left).Others
	return assignment.Room{Others: others, All: others}
}

func (s *scene) lines() words {
	in := &s.in
	return words{
		"count":         number(&in.Count),
		"no map":        func(rest string) error { return s.readMap(assignment.Absent, rest) },
		"foreign map":   func(rest string) error { return s.readMap(assignment.Foreign, rest) },
		"untracked map": func(rest string) error { return s.readMap(assignment.Untracked, rest) },
		"clean map":     func(rest string) error { return s.readMap(assignment.Clean, rest) },
		"requests":      func(rest string) (err error) { in.State.Handover, err = readSlots(rest); return err },
		"quarantine":    s.readQuarantine,
		"over":          s.readOver,
		"ended":         s.readEnded,
		"epoch":         epoch(&in.State.Epoch),
		"fence-after":   s.readFence,
		"room":          func(rest string) error { s.room = new(int); return number(s.room)(rest) },
		"pod":           s.readPods,
		"pods":          s.readPods,
		"gone":          s.readGone,
		"wants":         s.readWants,
		"vacant":        s.readVacant,

		"partitions":           func(rest string) error { return s.readPartitions(assignment.Clean, rest) },
		"foreign partitions":   func(rest string) error { return s.readPartitions(assignment.Foreign, rest) },
		"untracked partitions": func(rest string) error { return s.readPartitions(assignment.Untracked, rest) },
		"newer partitions":     func(string) error { in.Partitions.Trust = assignment.Unreadable; return nil },
		"me":                   s.readMe,
	}
}

// earlier is the UID of an earlier pod of some name.
const earlier = "earlier"

func (s *scene) readMap(trust assignment.Trust, rest string) error {
	entries, err := readSlots(rest)
	s.in.Trust, s.in.State.Slots, s.in.State.UIDs = trust, entries, make(slots, len(entries))
	for id, name := range entries {
		was, before := strings.CutSuffix(name, "("+earlier+")")
		if entries[id] = was; before {
			s.in.State.UIDs[id] = earlier
			continue
		}
		s.in.State.UIDs[id] = assignment.ShortUID(pod(was, 0).UID)
	}
	return err
}

func (s *scene) readQuarantine(rest string) error {
	s.in.State.Quarantine = nil
	for span := range strings.FieldsSeq(rest) {
		var q assignment.Span
		ids, since, _ := strings.Cut(span, "@")
		from, to, more := strings.Cut(ids, "-")
		if !more {
			to = from
		}
		if err := errors.Join(number(&q.From)(from), number(&q.To)(strings.Replace(to, "max", strconv.Itoa(assignment.MaxID), 1)), epoch(&q.Epoch)(since)); err != nil {
			return err
		}
		s.in.State.Quarantine = append(s.in.State.Quarantine, q)
	}
	return nil
}

func (s *scene) readOver(rest string) error {
	s.in.Served = map[int64]bool{}
	for since := range strings.FieldsSeq(rest) {
		var e int64
		if err := epoch(&e)(since); err != nil {
			return err
		}
		s.in.Served[e] = true
	}
	return nil
}

func (s *scene) readEnded(rest string) error {
	s.in.Ended = map[int]bool{}
	for text := range strings.FieldsSeq(rest) {
		var id int
		if err := number(&id)(text); err != nil {
			return err
		}
		s.in.Ended[id] = true
	}
	return nil
}

func (s *scene) readFence(rest string) error {
	rest, s.in.FenceOurs = strings.CutSuffix(rest, " by idalloc")
	return duration(&s.in.State.FenceAfter)(rest)
}

func (s *scene) readPods(rest string) error {
	names, is, described := strings.Cut(rest, ":")
	for name := range strings.FieldsSeq(names) {
		p := podLine{new(pod(name, 1))}
		if described {
			if err := p.words().parts(is); err != nil {
				return err
			}
		}
		if err := p.consistent(); err != nil {
			return err
		}
		s.in.Pods = slices.DeleteFunc(s.in.Pods, func(o Pod) bool { return o.Name == name })
		s.in.Pods = append(s.in.Pods, *p.Pod)
	}
	return nil
}

// readPartitions reads what is in force, COUNT STRATEGY, and who owns what, ID=SET.
func (s *scene) readPartitions(trust assignment.Trust, rest string) error {
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return errors.New("how many partitions, and by which strategy?")
	}
	in := &assignment.Partitions{Strategy: fields[1], Owners: placement.Owners{}, Epoch: 1}
	if err := number(&in.Count)(fields[0]); err != nil {
		return err
	}
	owners, err := readSlots(strings.Join(fields[2:], " "))
	if err != nil {
		return err
	}
	for id, text := range owners {
		if in.Owners[id], err = readSet(text); err != nil {
			return err
		}
	}
	s.in.State.Partitions, s.in.Partitions.Trust = in, trust
	return nil
}

// readWants reads what the user wants, COUNT or COUNT STRATEGY, and for external a target, ID=SET.
func (s *scene) readWants(rest string) error {
	fields := strings.Fields(rest)
	wish := assignment.Wish{HasCount: true}
	if len(fields) == 0 {
		return errors.New("how many partitions?")
	}
	if err := number(&wish.Count)(fields[0]); err != nil {
		return err
	}
	if len(fields) > 1 {
		wish.Strategy = fields[1]
	}
	if len(fields) > 2 {
		wish.Target = placement.Owners{}
		target, err := readSlots(strings.Join(fields[2:], " "))
		if err != nil {
			return err
		}
		for id, text := range target {
			if wish.Target[id], err = readSet(text); err != nil {
				return err
			}
		}
	}
	s.in.Partitions.Wish = wish
	return nil
}

func (s *scene) readVacant(rest string) error {
	s.in.Partitions.Vacant = map[int]bool{}
	for text := range strings.FieldsSeq(rest) {
		var id int
		if err := number(&id)(text); err != nil {
			return err
		}
		s.in.Partitions.Vacant[id] = true
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

func (s *scene) readMe(rest string) error {
	in := &s.in
	in.Intent, in.Rollout, in.TakeReserved, in.StandsBack, in.FenceAfter, in.NeedsWrite = Claim, Rollout{}, false, false, 0, false
	in.Partitions.Joins = false
	name, is, described := strings.Cut(rest, ":")
	if in.Me = name; !described {
		return nil
	}
	return words{
		"moves":              just(func() { in.Intent = Move }),
		"releases":           just(func() { in.Intent = Release }),
		"current revision":   just(func() { in.Rollout.Current = true }),
		"max unavailable":    number(&in.Rollout.MaxUnavailable),
		"available":          number(&in.Rollout.Available),
		"too early to ask":   just(func() { in.StandsBack = true }),
		"slot free for long": just(func() { in.TakeReserved = true }),
		"needs a write":      just(func() { in.NeedsWrite = true }),
		"joins":              just(func() { in.Partitions.Joins = true }),
		"fence-after":        duration(&in.FenceAfter),
	}.parts(is)
}

// podLine is a pod as its line tells it.
type podLine struct{ *Pod }

// words say what the pod is, and what its receipt says.
func (p podLine) words() words {
	return words{
		"age":           p.readAge,
		"revision":      func(rest string) error { p.Controller = rest; return nil },
		"no controller": just(func() { p.Controller = "" }),
		"relabelled":    just(func() { p.Owned = false }),
		"terminating":   just(func() { p.Terminating, p.Deadline = true, t0 }),
		"grace":         p.readGrace,
		"lost":          just(func() { p.Terminating, p.Lost, p.Deadline = true, true, t0.Add(-time.Minute) }),
		"ordinal":       number(&p.Ordinal),
		"receipt":       p.readReceipt,
		"hands over":    just(func() { p.receipt().HandsOver = true }),
		"fence-after":   p.readFence,
		"waits":         just(func() { p.receipt().Waits = true }),
		"gave up":       just(func() { p.receipt().GaveUp = true }),
		"gives":         p.readGives,
		"failed":        func(rest string) error { return number(&p.receipt().Failed)(rest) },
		"locks":         p.readLocks,
		"yields":        func(rest string) (err error) { p.receipt().Yields, err = readSet(rest); return err },
		"paused":        just(func() { p.receipt().Paused = true }),
	}
}

// unnamed stands in a receipt that has not named a slot yet, and ofEntry for the slot of the pod's entry.
const unnamed, ofEntry = -2, -1

// receipt returns the pod's receipt, a new one where it has none.
func (p podLine) receipt() *assignment.Receipt {
	if p.Receipt == nil {
		p.Receipt = &assignment.Receipt{UID: p.UID, Owner: "o", ID: unnamed}
	}
	return p.Receipt
}

// consistent returns an error if the words about the pod's receipt do not go together.
func (p podLine) consistent() error {
	r := p.Receipt
	switch {
	case r == nil:
	case r.ID == unnamed && r.Locks():
		return fmt.Errorf("the receipt of %s names no slot", p.Name)
	case r.ID == unnamed:
		r.ID = 0
	case !r.Locks() && !r.Gives:
		return fmt.Errorf("the receipt of %s names a slot, and says that there is none", p.Name)
	}
	return nil
}

func (p podLine) readAge(rest string) error {
	var age time.Duration
	err := duration(&age)(rest)
	p.Created = t0.Add(-age)
	return err
}

func (p podLine) readGrace(rest string) error {
	var left time.Duration
	err := duration(&left)(rest)
	p.Deadline = t0.Add(left)
	return err
}

func (p podLine) readReceipt(rest string) error {
	const long = 100 // the epoch of a receipt, where it does not matter
	r := p.receipt()
	r.ID, r.Epoch = ofEntry, long
	id, since, dated := strings.Cut(rest, " of epoch ")
	if rest == "" {
		return nil
	}
	if err := number(&r.ID)(id); err != nil || !dated {
		return err
	}
	return epoch(&r.Epoch)(since)
}

func (p podLine) readGives(rest string) error {
	r := p.receipt()
	r.GaveUp, r.Gives = true, true
	return number(&r.ID)(rest)
}

// readSet reads a set of partitions. Its ranges are joined by a plus, because commas separate words.
func readSet(text string) (placement.Set, error) {
	return placement.Parse(strings.ReplaceAll(text, "+", ","), placement.MaxCount)
}

func (p podLine) readLocks(rest string) error {
	set, err := readSet(strings.TrimSpace(strings.Replace(rest, "nothing", "", 1)))
	p.receipt().Partitions = &set
	return err
}

func (p podLine) readFence(rest string) error {
	if rest == "unreadable" {
		p.receipt().FenceAfter = -1
		return nil
	}
	return duration(&p.receipt().FenceAfter)(rest)
}
