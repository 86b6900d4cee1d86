package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// Author is the writer of an object.
type Author int

// Authors.
const (
	// Another is a writer other than idalloc.
	Another Author = iota
	Process
	Controller
)

// Write describes a write, apart from the object that it stored.
type Write struct {
	By Author
	// Process distinguishes the processes of a pod.
	Process string
	// Patch is what was sent. If admission changed it, the change counts as another writer's.
	Patch Patch
	// At is the time at which it was stored.
	At time.Duration
}

// Recorder turns what was stored, listed and worked on into steps, and the Checker judges them.
type Recorder struct {
	Checker

	// Refused is called for each step that the protocol does not allow, Assumed for each step that breaks an assumption of the protocol.
	Refused, Assumed func(s Step, err error)
	// Steps counts the allowed steps.
	Steps int

	seen map[string]*seen
	// changed holds the Leases that a writer other than idalloc wrote last. Their holders need not act on that content.
	changed map[string]bool
}

// seen is what the Recorder knows about a pod.
type seen struct {
	words     words
	id        string
	process   string
	processes []string
	// wrote are the bytes of the receipts that idalloc has written.
	wrote []string
	// lost is the receipt that another writer replaced last, or of which it removed a lock, and lostAt the version of that change.
	lost   string
	lostAt int64
}

// words are the parts of a pod's lock that others read. receipt is the name of the receipt's bytes (idOf).
type words struct{ receipt, id, owner string }

func wordsOf(pod *metav1.ObjectMeta) words {
	text := pod.Annotations[receipt.Key]
	if text != "" {
		text = idOf(text)
	}
	return words{text, pod.Labels[receipt.IDLabel], pod.Labels[receipt.OwnerLabel]}
}

// Pod records a version of a pod.
func (r *Recorder) Pod(pod *metav1.ObjectMeta, w Write) {
	uid, version := string(pod.UID), versionOf(pod)
	now, id := wordsOf(pod), pod.Annotations[receipt.IDKey]
	p := r.of(uid, pod.Labels[receipt.AssignLabel] == receipt.ByController)
	known := r.seen[uid]
	if w.By == Process {
		r.Asks(uid, w.Process)
	}
	if now != known.words {
		w.Patch.Version = w.Patch.Version || w.Patch.Text && known.words.receipt == "" // a receipt that locks nothing may come back
		before, sent := known.words, w.By != Another && w.Patch.Receipt != "" && idOf(w.Patch.Receipt) == now.receipt
		again := slices.Contains(known.wrote, now.receipt) && len(ReceiptOf(pod).Locks) == 0 // another writer removed it, and then the request arrived once more
		if known.words = now; sent && !hidden(pod) && !again {
			r.receipt(p, ReceiptOf(pod), w, w.By == Process && w.Process != known.process, version)
		} else {
			r.foreign(p, ReceiptOf(pod), before, now, sent, version)
		}
	}
	if id == known.id {
		return
	}
	known.id = id
	r.id(p, pod, w.By)
}

// of returns the Checker's pod. It adds the pod if it is new.
func (r *Recorder) of(uid string, gated bool) *pod {
	if r.pods[uid] == nil {
		r.Add(uid, idOf(""), gated)
		if r.seen == nil {
			r.seen = map[string]*seen{}
		}
		r.seen[uid] = &seen{}
	}
	return r.pods[uid]
}

// foreign records a receipt that another writer changed. Its bytes may have been there before, so the receipt gets a name of its own. If only the labels
// changed, the bytes stand as before. sent: idalloc sent these bytes now, and admission removed the labels.
func (r *Recorder) foreign(p *pod, next Receipt, before, now words, sent bool, version int64) {
	mark := comesBack
	if sent || before.receipt == now.receipt {
		mark = relabelled
	}
	next.ID += mark + strconv.FormatInt(version, 10)
	s := Step{Do: Foreign, Pod: p.uid, Receipt: next, Version: version}
	if known := r.seen[p.uid]; mark == comesBack || !subset(p.receipt.Locks, next.Locks) {
		known.lost, known.lostAt = bytesOf(p.receipt.ID), version
	}
	begins := !p.gated && mark == comesBack // Begin would notice
	lost := slices.ContainsFunc(p.receipt.Locks, func(x string) bool {
		is := p.thing(x)
		return is.confirmed() && (!has(next.Locks, x) || begins && !is.works)
	})
	if r.take(s); lost {
		r.lost(p, s)
	}
	if mark == comesBack && slices.Contains(r.seen[p.uid].wrote, now.receipt) {
		r.expose(p, s, fmt.Errorf("%s of pod %s: %w: A3: it brings back no receipt of idalloc", Foreign, p.uid, ErrRefused))
	}
	if before.receipt != "" && (before.id != now.id || before.owner != now.owner) {
		r.expose(p, s, fmt.Errorf("%s of pod %s: %w: A3: it leaves the two labels", Foreign, p.uid, ErrRefused))
	}
}

// lost notes that another writer removed a lock that T3 confirmed. The pod's process may begin before it knows that.
func (r *Recorder) lost(p *pod, s Step) {
	if !p.exposed {
		r.expose(p, s, fmt.Errorf("%s of pod %s: %w: A3: a lock that T3 confirmed stays", s.Do, p.uid, ErrRefused))
	}
}

// Marks in the names of receipts of other writers.
const comesBack, relabelled = "@", "~"

// bytesOf removes the mark from a name: it returns the receipt with the same bytes.
func bytesOf(id string) string {
	if i := strings.IndexAny(id, comesBack+relabelled); i >= 0 {
		return id[:i]
	}
	return id
}

// receipt records a receipt that its own writer wrote.
func (r *Recorder) receipt(p *pod, next Receipt, w Write, former bool, version int64) {
	switch {
	case w.Patch.Version, w.Patch.Text && !strings.Contains(p.receipt.ID, comesBack):
		next.Tests = p.receipt.ID
	case w.Patch.Text:
		next.Tests = bytesOf(p.receipt.ID)
	}
	if known := r.seen[p.uid]; !slices.Contains(known.wrote, next.ID) {
		known.wrote = append(known.wrote, next.ID)
	}
	do := T2
	switch {
	case w.By == Controller && next.Begun:
		do = Begin
	case w.By == Controller && len(next.Locks) > 0:
		do = Locks
	case w.By == Controller:
		do = Withdraw
	case len(next.Locks) == 0:
		do = Give
	}
	r.take(Step{Do: do, Pod: p.uid, Receipt: next, Showed: next.Tests, Former: former, At: w.At})
	r.take(Step{Do: Arrives, Pod: p.uid, Receipt: next, Stands: next, Version: version, At: w.At})
}

// id records the new value of a gated pod's id annotation.
func (r *Recorder) id(p *pod, pod *metav1.ObjectMeta, by Author) {
	owner, _ := receipt.Anywhere(pod)
	var ids []string
	if id, err := strconv.Atoi(pod.Annotations[receipt.IDKey]); err == nil {
		ids = []string{Slot(pod.Namespace, assignment.OwnerLabelValue(owner.Owner), id)}
	}
	switch {
	case !p.gated || len(ids) == 1 && slices.Contains(p.ids, ids[0]):
	case by == Controller && len(ids) > 0:
		r.take(Step{Do: Publish, Pod: p.uid, Thing: ids[0]})
	default:
		r.take(Step{Do: ForeignID, Pod: p.uid, IDs: ids})
	}
}

// Ended records that a pod's object vanished or reports that the pod ended.
func (r *Recorder) Ended(uid string) {
	if p := r.pods[uid]; p != nil && !p.gone {
		r.take(Step{Do: End, Pod: uid})
	}
}

// Asks records that a process of a pod did something. A new name after the first one is a restart.
func (r *Recorder) Asks(uid, process string) {
	known := r.seen[uid]
	if known == nil || slices.Contains(known.processes, process) {
		return
	}
	if known.process, known.processes = process, append(known.processes, process); len(known.processes) > 1 {
		r.take(Step{Do: Restart, Pod: uid})
	}
}

// Works records all that a pod works on at this moment, with its tokens.
func (r *Recorder) Works(uid string, things map[string]int64, at time.Duration) {
	p := r.of(uid, false)
	before := r.Working(uid)
	for _, x := range slices.Sorted(maps.Keys(before)) {
		if _, still := things[x]; !still {
			r.take(Step{Do: Stop, Pod: uid, Thing: x, At: at})
		}
	}
	for _, x := range slices.Sorted(maps.Keys(things)) {
		if token, worked := before[x]; worked && token == things[x] {
			continue
		}
		r.beside(p, x, things[x])
		do := Work
		if p.gated {
			do = Container
		}
		r.take(Step{Do: do, Pod: uid, Thing: x, Token: things[x], At: at})
	}
}

// beside reports other pods that work on the same thing as the pod when it begins.
func (r *Recorder) beside(p *pod, x string, token int64) {
	for _, q := range r.work[x] {
		if q != p && !r.excused(p, q) {
			r.Refused(Step{Do: Work, Pod: p.uid, Thing: x, Token: token}, fmt.Errorf("%s: %w: two at work, pods %s and %s", x, ErrRefused, p.uid, q.uid))
		}
	}
}

// excused reports whether the protocol's assumptions are broken for one of the two pods.
func (r *Recorder) excused(p, q *pod) bool {
	return p.exposed || q.exposed || (p.gone || q.gone) && (!p.receipt.Strict || !q.receipt.Strict)
}

// take has the Checker judge a step, and carries it out even if it is refused.
func (r *Recorder) take(s Step) {
	err := r.try(s)
	p := r.pods[s.Pod]
	switch {
	case err == nil:
		return
	case strings.Contains(err.Error(), ErrRefused.Error()+": A") || p != nil && p.gone:
		r.expose(p, s, err)
	case p != nil && p.exposed:
	default:
		r.Refused(s, err)
	}
	r.do(s, p)
}

// expose notes that an assumption is broken for a pod. If the pod is gone and still works, that is A2.
func (r *Recorder) expose(p *pod, s Step, err error) {
	p.exposed, p.damaged = true, true
	r.Assumed(s, err)
}

// Resume records a pod that existed before the Recorder began, and what it works on. What its receipt notes or has begun counts as confirmed.
func (r *Recorder) Resume(pod *metav1.ObjectMeta, works map[string]int64) {
	uid, next := string(pod.UID), ReceiptOf(pod)
	p := r.of(uid, pod.Labels[receipt.AssignLabel] == receipt.ByController)
	r.seen[uid].words, r.seen[uid].id = wordsOf(pod), pod.Annotations[receipt.IDKey]
	p.damaged = true
	p.send(next)
	p.answered(next.ID)
	r.do(Step{Do: Arrives, Receipt: next, Stands: next, Version: versionOf(pod)}, p)
	for _, x := range next.Locks {
		if next.Begun || slices.Contains(next.Notes, x) {
			r.do(Step{Do: T3, Thing: x, Version: versionOf(pod)}, p)
		}
	}
	for _, x := range slices.Sorted(maps.Keys(works)) {
		r.beside(p, x, works[x])
		r.do(Step{Do: Work, Thing: x, Token: works[x]}, p)
	}
}

// Locked returns what the receipt of a pod locks.
func (r *Recorder) Locked(uid string) []string {
	if p := r.pods[uid]; p != nil {
		return p.receipt.Locks
	}
	return nil
}

// Working returns what a pod works on, with its tokens.
func (r *Recorder) Working(uid string) map[string]int64 {
	p := r.pods[uid]
	if p == nil {
		return nil
	}
	works := map[string]int64{}
	for _, t := range p.things {
		if t.works {
			works[t.name] = t.had
		}
	}
	return works
}

// Others returns the UIDs of the other pods that lock, or work on, the things of a step.
func (r *Recorder) Others(s Step) (pods []string) {
	for _, x := range append(slices.Concat(s.Receipt.Locks, s.Receipt.Notes), s.Thing) {
		for _, q := range slices.Concat(r.lock[x], r.work[x], r.lock[every(x)]) {
			if q.uid != s.Pod && !slices.Contains(pods, q.uid) {
				pods = append(pods, q.uid)
			}
		}
	}
	return pods
}

// Forget drops a pod that is gone, with its work.
func (r *Recorder) Forget(uid string) {
	if r.pods[uid] == nil {
		return
	}
	r.Works(uid, nil, 0)
	r.Ended(uid)
	delete(r.pods, uid)
	delete(r.seen, uid)
}

func (r *Recorder) try(s Step) error {
	err := r.Take(s)
	if err == nil {
		r.Steps++
	}
	return err
}
