package simulation

import (
	"context"
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// ownerName is the workload's name.
const ownerName = "worker"

// world is one history under way.
type world struct {
	seed    uint64
	start   time.Time
	profile profile.Profile
	trace   io.Writer // nil for none
	// chronicle is nil for none.
	chronicle *Chronicle
	ctx       context.Context //nolint:containedctx // of all processes

	mu        sync.Mutex
	server    *server.Server
	net       network
	nodes     []*node
	processes []*process
	pods      map[string]*kubeletPod
	pending   map[string]bool // reconciliations that are due
	judge     *judge
	steps     int
	faults    map[string]int
	sum       hash.Hash64
	lines     int
	line      []byte       // the newest
	down      bool         // the server cannot be reached
	quota     bool         // controllers cannot make pods
	stuck     float64      // of a new pod never to start
	broken    map[int]bool // templates whose programs end by themselves
	quiet     bool         // the faults are over
	over      bool         // all processes have ended
	leaked    string
	podNumber int
	traps     []*trap // of faults that wait for their moment
	waiting   []*waiting
	others    []faultKind // what else goes wrong in this history
	more      int         // how many of them happened because somebody was held up
	serving   *process    // whose request is carried out
}

func newWorld(seed uint64, p profile.Profile) *world {
	w := &world{
		seed: seed, start: time.Now(), ctx: context.Background(), profile: p, pods: map[string]*kubeletPod{}, pending: map[string]bool{}, broken: map[int]bool{},
		faults: map[string]int{}, sum: fnv.New64a(),
	}
	w.net = network{slower: 1}
	w.server = server.New(w, server.Settings{PageSize: p.PageSize, CacheLag: p.CacheLag, WatchList: p.WatchList})
	w.judge = newJudge(w)
	return w
}

// Now is the time since the beginning.
func (w *world) Now() time.Duration { return time.Since(w.start) }

// wall is what a right clock shows.
func (w *world) wall() time.Time { return time.Now().UTC() }

// dice returns dice of their own.
func (w *world) dice(words ...string) *dice.Dice { return dice.Derive(w.seed, words...) }

// After runs do at a later moment, alone.
func (w *world) After(d time.Duration, do func()) {
	time.AfterFunc(max(d, 1), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.judge.look()
		w.chronicle.look(w)
		do()
		w.chronicle.look(w)
	})
}

// Alone runs do while nothing else changes the world.
func (w *world) Alone(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.chronicle.look(w)
}

// Step counts and notes one event.
func (w *world) Step(what string, about ...string) {
	w.steps++
	w.note(what, about...)
}

// note adds a line to the history.
func (w *world) note(what string, about ...string) {
	w.lines++
	w.line = appendLine(w.line[:0], w.Now(), what, about)
	_, _ = w.sum.Write(w.line) // a hash never fails
	if w.trace != nil {
		_, _ = w.trace.Write(w.line)
	}
}

// log adds what a process logs to what is written of the history. It is no part of it: who does not write it down has the same one.
func (w *world) log(p *process, line string) {
	if w.trace != nil {
		_, _ = w.trace.Write(appendLine(nil, w.Now(), "log", []string{p.id, line}))
	}
}

// appendLine is fmt's "%14.9f %-9s %s\n" of seconds and words, at a fraction of its price.
func appendLine(b []byte, at time.Duration, what string, about []string) []byte {
	const space, zeros = "         ", "000000000"
	var digits [20]byte
	seconds := strconv.AppendInt(digits[:0], int64(at/time.Second), 10)
	b = append(b, space[:max(0, 4-len(seconds))]...)
	b = append(append(b, seconds...), '.')
	fraction := strconv.AppendInt(digits[:0], int64(at%time.Second), 10)
	b = append(b, zeros[:len(zeros)-len(fraction)]...)
	b = append(append(b, fraction...), ' ')
	b = append(b, what...)
	b = append(b, space[:max(0, len(space)-len(what))]...)
	for _, word := range about {
		b = append(append(b, ' '), word...)
	}
	if len(about) == 0 {
		b = append(b, ' ')
	}
	return append(b, '\n')
}

// Changed is told of every stored change.
func (w *world) Changed(v *server.Version) {
	w.note("stored", v.Kind.Resource, v.Name, strconv.FormatInt(v.RV, 10))
	w.judge.stored(v)
	switch v.Kind.Resource {
	case object.Pods:
		w.kubeletHears(v)
		if w.serving != nil {
			w.tell(aReceiptChanged, w.serving)
		}
	case w.profile.Resource:
		if v.Before == nil || !object.EqualBut(object.Object{object.Metadata: object.At(v.Object, object.Metadata, "annotations")}, object.Object{object.Metadata: object.At(v.Before.Object, object.Metadata, "annotations")}) {
			w.tell(anOwnerChanged, w.serving)
		}
	}
	w.wakeControllers(v)
}
