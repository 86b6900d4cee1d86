package world

import (
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/profile"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// OwnerName is the workload's name.
const OwnerName = "worker"

// World is one history under way. Code that changes it from a goroutine of its own does so in Alone.
type World struct {
	History
	Woes

	Seed    uint64
	Profile profile.Profile
	Witness Witness
	// Mischief may be nil where nothing goes wrong.
	Mischief Mischief
	// Clings is the chance that a fault hits the pod, or its machine, that the one before hit: Victim.
	Clings float64
	Victim string
	// Answered, if it is not nil, is told of each request that the server has carried out.
	Answered func(p *Process, r *server.Request, a server.Answer)

	// Controller is the code of idalloc-controller, nil without it.
	Controller Controller

	Server    *server.Server
	Network   Network
	Nodes     []*Node
	Processes []*Process
	// Policies judge what is written, if they are not nil, and Forbidden is what they refused.
	Policies  Policies
	Forbidden []string
	refused   map[Account]time.Duration // since when an agent's writes are refused
	Serving   *Process                  // whose request is carried out
	Request   *server.Request           // that one
	Evicting  bool                      // it is for an eviction
	Sent      int                       // the number of that request: it grows with each that is sent

	Faults map[string]int // how often each happened
	Down   bool           // the server cannot be reached
	Quota  bool           // controllers cannot make pods
	Stuck  float64        // of a new pod never to start
	Broken map[int]bool   // templates whose programs end by themselves
	Quiet  bool           // the faults are over
	bound  bool           // the server does not accept the token of a pod that is gone
	// CountsEnding says that the status of Deployments and ReplicaSets counts Terminating pods, as since Kubernetes 1.35.
	CountsEnding bool

	mu         sync.Mutex
	pods       map[string]*kubeletPod
	pending    map[string]bool // reconciliations that are due
	paused     map[string]bool // pods whose work on partitions was paused, and whether they still are
	traps      []*Trap         // of faults that wait for their moment
	kept       time.Duration   // until when one of them keeps a request, or kept it a moment ago
	waiting    []*waiting      // who is held up
	disturbed  []*disturbance  // what makes requests fare badly
	orphans    []*orphan       // writes of processes that were killed
	lastNumber int
	lastSent   int
	closing    bool   // processes end for good
	over       bool   // all processes have ended
	leaked     string // who asked for something after that
}

// Witness judges what happens, and changes nothing.
type Witness interface {
	// Look compares what all processes act under at this moment.
	Look()
	// Stored is told of every version that is stored.
	Stored(v *server.Version)
	// HandOn has next be the process that continues the work: it is the one that came before it in its pod.
	HandOn(before, next *Process)
	// Told is told of every identity that a process publishes.
	Told(p *Process, id identity.Identity)
	// Asked is told of every stop that a process asks its work for, Left of partitions of it on which the work has stopped, and Answered of its end.
	Asked(p *Process, stop allocator.Stop)
	Left(p *Process, number int, set placement.Set)
	Answered(p *Process, stop allocator.Stop)
	// Excuse notes a change for which pods may have to move.
	Excuse()
	// Trouble notes that something went wrong that may keep a process from going on.
	Trouble()
}

// Mischief is what goes wrong because of what just happened.
type Mischief interface {
	// Damage damages what idalloc keeps on the owner.
	Damage(d *dice.Dice)
	// Another has one of the history's faults happen.
	Another(d *dice.Dice)
}

// firstVersions are resourceVersions after which servers begin to count: small ones, ones that outgrow a float64, those of a cluster whose storage counts
// in nanoseconds, and ones that almost outgrow 63 bits.
func firstVersions() []int64 {
	return []int64{1000, 1000, 1<<53 - 20, 1753647547040015001, math.MaxInt64 - 1<<32}
}

// New returns a world without nodes and objects. Before time moves it needs a witness.
func New(seed uint64, p profile.Profile) *World {
	w := &World{
		Seed: seed, History: newHistory(), Profile: p, pods: map[string]*kubeletPod{}, pending: map[string]bool{}, Broken: map[int]bool{},
		Faults: map[string]int{}, refused: map[Account]time.Duration{}, Woes: Woes{Hangs: map[int]bool{}},
	}
	w.Network = Network{Slower: 1}
	w.bound = w.Dice("bound tokens").Chance(0.7)
	w.CountsEnding = w.Dice("terminating replicas").Chance(0.5)
	w.Server = server.New(w, server.Settings{PageSize: p.PageSize, CacheLag: p.CacheLag, WatchList: p.WatchList})
	w.Server.CountFrom(dice.Pick(w.Dice("first version"), firstVersions()))
	w.Server.Forbids, w.Server.Judge = w.forbids, w.judged
	if p.Budget {
		w.Server.Budget = w.lets
	}
	return w
}

// Wall is what a right clock shows.
func (w *World) Wall() time.Time { return time.Now().UTC() }

// Dice returns dice of their own.
func (w *World) Dice(words ...string) *dice.Dice { return dice.Derive(w.Seed, words...) }

// After runs do at a later moment, alone.
func (w *World) After(d time.Duration, do func()) {
	time.AfterFunc(max(d, 1), func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.Witness.Look()
		do()
	})
}

// Alone runs do while nothing else changes the world.
func (w *World) Alone(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// Changed is told of every stored change.
func (w *World) Changed(v *server.Version) {
	w.Note("stored", v.Kind.Resource, v.Name, strconv.FormatInt(v.RV, 10))
	w.traceKeys(v)
	w.Witness.Stored(v)
	switch v.Kind.Resource {
	case object.Pods:
		w.kubeletHears(v)
		if w.Serving != nil {
			w.tell(aReceiptChanged, w.Serving)
		}
	case w.Profile.Resource:
		w.undo(v)
		if v.Before == nil || !object.EqualBut(object.Object{object.Metadata: object.At(v.Object, object.Metadata, "annotations")}, object.Object{object.Metadata: object.At(v.Before.Object, object.Metadata, "annotations")}) {
			w.tell(anOwnerChanged, w.Serving)
		}
	}
	if !w.elects(v) {
		w.wakeControllers(v)
	}
}

// Slots reads the assignment of an owner; nil if it cannot be read.
func Slots(owner *server.Version) assignment.Slots { return Read(owner).State.Slots }

// Read is what an owner says.
func Read(owner *server.Version) assignment.Record {
	return assignment.Decode(owner.Annotations())
}

// NextNumber is another number each time.
func (w *World) NextNumber() int {
	w.lastNumber++
	return w.lastNumber
}
