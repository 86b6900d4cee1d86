package inspect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/allocator/store/slotlease"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/cases"
)

// scene is a snapshot as the lines of a case tell it.
type scene struct {
	snapshot

	wants map[string]string
}

// newScene is a workload of three pods with ids, and then what the lines of these texts say.
func newScene(texts ...string) (s scene, err error) {
	s = scene{settledPods(3), map[string]string{}}
	for line := range strings.Lines(strings.Join(texts, "\n")) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if err := s.terms().Read(line); err != nil {
			return s, fmt.Errorf("%q: %w", line, err)
		}
	}
	if len(s.wants) > 0 {
		s.owner.Wish = assignment.DecodeWish(s.wants)
	}
	return s, nil
}

// terms are the lines about the workload. "free 1" removes the entry of id 1 and its pod, and "owns 1=none" says that id 1 is no member.
func (s *scene) terms() cases.Terms {
	o, state := &s.owner, &s.owner.Record.State
	return cases.Terms{
		"settled":         func(rest string) error { n, err := strconv.Atoi(rest); s.snapshot = settledPods(n); return err },
		"kind":            cases.Text(&o.Kind),
		"resource":        cases.Text(&o.Resource),
		"paused":          cases.Just(func() { o.Rollout.Paused = true }),
		"count":           cases.Number(&o.Count),
		"now":             moment(&s.now),
		"written":         moment(&s.written),
		"changed":         moment(&s.changed),
		"map":             slotsTo(&state.Slots),
		"no map":          cases.Just(func() { o.Record = assignment.Record{} }),
		"no entry":        func(rest string) error { id, err := strconv.Atoi(rest); delete(state.Slots, id); return err },
		"free":            func(rest string) error { id, err := strconv.Atoi(rest); s.free(id); return err },
		"requests":        slotsTo(&state.Handover),
		"damaged":         s.readDamage,
		"max unavailable": cases.Number(&o.Rollout.MaxUnavailable),
		"max surge":       cases.Number(&o.Rollout.MaxSurge),
		"blocks below":    cases.Number(&o.Rollout.BlocksBelow),
		"current":         cases.Text(&s.rollout.current),
		"outdated":        func(rest string) error { s.rollout.outdated[rest] = true; return nil },
		"overdue":         cases.Text(&s.rollout.overdue),
		"budget":          func(rest string) error { s.rollout.budgets = append(s.rollout.budgets, rest); return nil },
		"told": func(rest string) error {
			s.rollout.told = append(s.rollout.told, told{at: s.now, message: rest})
			return nil
		},
		"refusal": func(rest string) error {
			s.rollout.told = append(s.rollout.told, told{s.now, rest, true})
			return nil
		},
		"rests":    func(rest string) error { s.rollout.rest(rest); return nil },
		"finished": cases.Just(func() { s.rollout.finished = true }),
		"evict":    func(rest string) error { o.Annotations = map[string]string{assignment.EvictKey: rest}; return nil },
		"copied":   cases.Text(&s.copied),
		"refused": func(rest string) error {
			name, why, _ := strings.Cut(rest, " ")
			s.refused = map[string]string{name: why}
			return nil
		},
		"map refused":      cases.Text(&s.mapRefused),
		"renewals refused": s.readRefused,
		"lease":            s.readLease,
		"leases denied":    cases.Just(func() { s.leases = leases{denied: errors.New("no")} }),
		"account":          s.readAccount,
		"wants":            s.readWants,
		"row":              s.readRow,
		"owns":             s.readOwns,
		"no row":           cases.Just(func() { state.Row = nil }),
		"pod":              s.readPods,
		"pods":             s.readPods,
		"frozen by":        cases.Text(&s.frozen),
		"gone": func(rest string) error {
			return s.each(rest, func(name string) error { delete(s.pods, name); return nil })
		},
	}
}

func (s *scene) each(names string, do func(name string) error) error {
	for name := range strings.FieldsSeq(names) {
		if err := do(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) readPods(rest string) error {
	names, is, _ := strings.Cut(rest, ":")
	return s.each(names, func(name string) (err error) {
		if _, there := s.pods[name]; !there {
			s.add(name)
		}
		if is != "" {
			s.edit(name, func(p *pod) { err = s.podTerms(p).Parts(is) })
		}
		return err
	})
}

// podTerms are what may be said of a pod, as in "pods y z: waits, ordinal 2". "made room" says that a pod gave its id up and waits again, and "of" is
// followed by the UID of its controller.
func (s *scene) podTerms(p *pod) cases.Terms {
	r := &p.Receipt
	elsewhere := func(state receipt.State) func() {
		return func() {
			*r = receipt.Receipt{Share: receipt.Nothing()}
			p.elsewhere = receipt.Receipt{UID: p.UID, Owner: "ReplicaSet/worker-5d9", State: state, Share: receipt.Share{ID: 4}}
		}
	}
	return cases.Terms{
		"receipt": func(rest string) error {
			*r = receipt.Receipt{UID: p.UID, Owner: s.owner.String(), State: receipt.Locks}
			return cases.Number(&r.Share.ID)(rest)
		},
		"restart": func(rest string) error {
			p.counted = counted{onCount: assignment.OnCountRestart, started: rest, turn: p.turn}
			return nil
		},
		"replace": func(rest string) error {
			p.counted = counted{onCount: assignment.OnCountReplace, started: rest}
			return nil
		},
		"asks":       cases.Number(&p.first),
		"number":     cases.Number(&r.Number),
		"turn":       cases.Just(func() { p.turn = true }),
		"no receipt": cases.Just(func() { *r = receipt.Receipt{Share: receipt.Nothing()} }),
		"waits":      cases.Just(func() { *r = receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing()} }),
		"gave up":    cases.Just(func() { *r = receipt.Receipt{State: receipt.GaveUp, Share: receipt.Nothing(), Rank: 1} }),
		"made room":  cases.Just(func() { *r = receipt.Receipt{State: receipt.Waits, Share: receipt.Nothing(), Rank: 1} }),
		"unreadable": func(rest string) error {
			p.damage, *r = `annotation idalloc.dev/receipt: not a receipt: "x"`, receipt.Receipt{State: receipt.Unreadable, Share: receipt.Nothing()}
			if rest == "" {
				return nil
			}
			return cases.Number(&r.Share.ID)(rest)
		},
		"wrong labels":      cases.Just(func() { p.damage = "labels x" }),
		"hands over":        cases.Just(func() { r.HandsOver = true }),
		"keeps its id":      cases.Just(func() { r.HandsOver = false }),
		"strict":            cases.Just(func() { r.Strict = true }),
		"rank":              cases.Number(&r.Rank),
		"works on":          func(rest string) (err error) { r.Share.Of = 6; r.Share.Partitions, err = set(rest); return err },
		"abstains":          cases.Just(func() { r.Share.Of, r.Share.Partitions = 0, placement.Set{} }),
		"still works on":    func(rest string) (err error) { r.Share.Of = 0; r.Share.Partitions, err = set(rest); return err },
		"works elsewhere":   cases.Just(elsewhere(receipt.Locks)),
		"waits elsewhere":   cases.Just(elsewhere(receipt.Waits)),
		"gave up elsewhere": cases.Just(elsewhere(receipt.GaveUp)),
		"terminating":       cases.Just(func() { p.Terminating = true }),
		"deadline":          moment(&p.Deadline),
		"ready":             cases.Just(func() { p.ready = true }),
		"graceless":         cases.Just(func() { p.graceless = true }),
		"phase":             cases.Text(&p.phase),
		"node":              cases.Text(&p.node),
		"created":           moment(&p.Created),
		"written":           moment(&p.written),
		"uid":               cases.Text(&p.UID),
		"account":           cases.Text(&p.account),
		"revision":          cases.Text(&p.revision),
		"controller":        cases.Text(&p.controller),
		"no controller":     cases.Just(func() { p.controller = "" }),
		"of":                cases.Text(&p.Controller),
		"template":          cases.Text(&p.template),
		"relabelled":        cases.Just(func() { p.Owned = false }),
		"ordinal":           cases.Number(&p.Ordinal),
		"condemned":         cases.Just(func() { p.Condemned = true }),
		"not condemned":     cases.Just(func() { p.Condemned = false }),
		"gated":             cases.Just(func() { p.byController, p.gated, p.phase = true, true, "Pending" }),
		"contract":          cases.Text(&p.contract),
		"no-number":         cases.Text(&p.noNumber),
		"ungated":           cases.Just(func() { p.byController, p.gated = true, false }),
		"gate":              func(rest string) error { p.gates = append(p.gates, rest); return nil },
		"given":             cases.Text(&p.given),
		"agent":             cases.Just(func() { p.byAgent = true }),
		"offered": func(rest string) error {
			p.told = &receipt.Proposal{UID: p.UID, Owner: s.owner.Owner()}
			return cases.Number(&p.told.Share.ID)(rest)
		},
		"told": func(rest string) error {
			kind, why, _ := strings.Cut(rest, " ")
			p.told = &receipt.Proposal{UID: p.UID, Owner: identity.Owner{Kind: kind, Name: s.owner.Name}, Share: receipt.Nothing(), Why: why}
			return nil
		},
	}
}

// readDamage reads the name of a key of the owner and what is wrong with it.
func (s *scene) readDamage(rest string) error {
	key, detail, ok := strings.Cut(rest, ": ")
	if !ok {
		return errors.New("want KEY: DETAIL")
	}
	s.owner.Record.Problems = append(s.owner.Record.Problems, assignment.ProblemError{Key: "idalloc.dev/" + key, Detail: detail})
	return nil
}

// readRefused reads a slot, and in one word why the renewals of its Lease are refused.
func (s *scene) readRefused(rest string) error {
	var id int
	var why string
	_, err := fmt.Sscan(rest, &id, &why)
	s.leases.refused = map[int]string{id: why}
	return err
}

// readLease reads the slot and the pod of a Lease of 40 s, which counts for 43 s, and when it was renewed.
func (s *scene) readLease(rest string) error {
	l := slotlease.Lease{Lasts: 40 * time.Second, Version: "1"}
	var renewed string
	if _, err := fmt.Sscan(rest, &l.ID, &l.Pod, &renewed); err != nil {
		return err
	}
	if s.leases.held == nil {
		s.leases.held = map[int]slotlease.Lease{}
	}
	l.Holder = "uid-" + l.Pod
	err := moment(&l.Renewed)(renewed)
	s.leases.held[l.ID] = l
	return err
}

// readAccount reads when the account of the pods was made.
func (s *scene) readAccount(rest string) error {
	var made time.Time
	err := moment(&made)(rest)
	s.accounts = map[string]time.Time{worker: made}
	return err
}

// readWants reads the user's annotations, without the prefix.
func (s *scene) readWants(rest string) error {
	if rest == "nothing" {
		clear(s.wants)
		s.owner.Wish = assignment.DecodeWish(nil)
		return nil
	}
	return s.each(rest, func(entry string) error {
		key, value, ok := strings.Cut(entry, "=")
		if s.wants["idalloc.dev/"+key] = value; !ok {
			return errors.New("want KEY=VALUE")
		}
		return nil
	})
}

// readRow reads how many partitions there are, and by which strategy. The owners stay.
func (s *scene) readRow(rest string) error {
	row := &assignment.Row{Owners: placement.Owners{}}
	if now := s.owner.Record.State.Row; now != nil {
		row.Owners = now.Owners
	}
	s.owner.Record.State.Row = row
	_, err := fmt.Sscan(rest, &row.Count, &row.Strategy)
	return err
}

// readOwns reads which ids own what.
func (s *scene) readOwns(rest string) error {
	return cases.Pairs(rest, func(id int, owned string) (err error) {
		owners := s.owner.Record.State.Row.Owners
		if owned == "none" {
			delete(owners, id)
			return nil
		}
		owners[id], err = set(owned)
		return err
	})
}

// moment reads how long after the beginning of a case something was.
func moment(to *time.Time) func(string) error { return cases.Moment(time.Unix(0, 0), to) }

// slotsTo adds entries to a map.
func slotsTo(to *assignment.Slots) func(string) error {
	return func(rest string) error {
		if *to == nil {
			*to = assignment.Slots{}
		}
		return cases.Pairs(rest, func(id int, name string) error { (*to)[id] = name; return nil })
	}
}

// set reads partitions, such as 0-3+7.
func set(text string) (placement.Set, error) {
	if text == "nothing" {
		return placement.Set{}, nil
	}
	return placement.Parse(strings.ReplaceAll(text, "+", ","), placement.MaxCount)
}
