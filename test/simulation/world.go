package simulation

import (
	"context"
	"hash"
	"hash/fnv"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// ownerName is the workload's name.
const ownerName = "worker"

// world is one history under way.
type world struct {
	seed     uint64
	start    time.Time
	profile  profile.Profile
	trace    io.Writer       // nil for none
	ctx      context.Context //nolint:containedctx // of all processes
	witness  witness
	mischief mischief
	// onlook, if it is not nil, is called whenever something happened.
	onlook func()

	mu         sync.Mutex
	server     *server.Server
	net        network
	nodes      []*node
	processes  []*process
	pods       map[string]*kubeletPod
	pending    map[string]bool // reconciliations that are due
	steps      int
	faults     map[string]int
	sum        hash.Hash64
	lines      int
	line       []byte       // the newest
	down       bool         // the server cannot be reached
	quota      bool         // controllers cannot make pods
	stuck      float64      // of a new pod never to start
	broken     map[int]bool // templates whose programs end by themselves
	quiet      bool         // the faults are over
	over       bool         // all processes have ended
	leaked     string
	lastNumber int
	traps      []*trap // of faults that wait for their moment
	waiting    []*waiting
	serving    *process // whose request is carried out
}

// witness judges what happens, and changes nothing.
type witness interface {
	// look compares what all processes act under at this moment.
	look()
	// stored is told of every version that is stored.
	stored(v *server.Version)
	// handOn has next be the process whose work goes on: it is the one that came before it in its pod.
	handOn(before, next *process)
	// excuse notes that somebody did something for which pods may have to move.
	excuse()
	// trouble notes that something went wrong that may keep a process from going on.
	trouble()
}

// mischief is what goes wrong because of what just happened.
type mischief interface {
	// damage has somebody damage what idalloc keeps on the owner.
	damage(d *dice.Dice)
	// another has one of the history's faults happen.
	another(d *dice.Dice)
}

// newWorld returns a world without nodes and objects. Before time moves it needs a witness, and where requests are held up or owners are
// meddled with, mischief.
func newWorld(seed uint64, p profile.Profile) *world {
	w := &world{
		seed: seed, start: time.Now(), ctx: context.Background(), profile: p, pods: map[string]*kubeletPod{}, pending: map[string]bool{}, broken: map[int]bool{},
		faults: map[string]int{}, sum: fnv.New64a(),
	}
	w.net = network{slower: 1}
	w.server = server.New(w, server.Settings{PageSize: p.PageSize, CacheLag: p.CacheLag, WatchList: p.WatchList})
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
		w.witness.look()
		w.noticed()
		do()
		w.noticed()
	})
}

// Alone runs do while nothing else changes the world.
func (w *world) Alone(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
	w.noticed()
}

// Changed is told of every stored change.
func (w *world) Changed(v *server.Version) {
	w.note("stored", v.Kind.Resource, v.Name, strconv.FormatInt(v.RV, 10))
	w.witness.stored(v)
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

func (w *world) noticed() {
	if w.onlook != nil {
		w.onlook()
	}
}

// slots reads an assignment; nil if it cannot be read.
func slots(value string) assignment.Slots {
	s, err := assignment.ParseSlots(value)
	if err != nil {
		return nil
	}
	return s
}

// nextNumber is another number each time.
func (w *world) nextNumber() int {
	w.lastNumber++
	return w.lastNumber
}
