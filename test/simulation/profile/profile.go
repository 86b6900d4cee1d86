package profile

import (
	"slices"
	"time"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/test/simulation/dice"
	"github.com/idalloc/idalloc/test/simulation/object"
)

// Profile is what a history is about, drawn from its seed.
type Profile struct {
	Resource string
	Count    int
	Nodes    int
	// FenceAfter is that of strict mode, zero without it.
	FenceAfter time.Duration
	// Start says that the program uses Start and asks Current, not Run.
	Start bool
	// HandsOver says that a Start program has a Stop callback.
	HandsOver          bool
	Surge, Unavailable int
	Latency            time.Duration // of a request, one way, on average
	WatchLag, CacheLag time.Duration
	WatchList          bool
	PageSize           int           // how many objects a page of a list has at most, 0 for as many as are asked for
	Grace              time.Duration // of a pod's deletion
	Stop               time.Duration // what the work needs to stop, on average
	SlowStop           bool          // it needs nearly ten seconds, all the time that strict mode leaves it
	Warm               time.Duration // how long a process acts before its pod is ready
	Chaos              time.Duration // how long the faults of a chapter last
	Chapters           int           // how many there are, each with other kinds of faults
	Skew               time.Duration // how far clocks are from right
	Ahead              time.Duration // how far one machine's clock is ahead of the others, beside that
	Crowded            bool          // few pods, few slots, and little time between two faults
	Keeps              bool          // the work of Run runs on when only the count changes
	Reluctant          float64       // of the work of a Start program not to stop when it is asked to
	Recreate           bool          // a Deployment's pods all end before new ones start
	Ordered            bool          // a StatefulSet's pods start one after the other and end in reverse
	Indexed            bool          // a Job's pods have completion indexes
	Mixed              bool          // every other revision has fenceOther, which may be none
	FenceOther         time.Duration
	Loosens            bool          // a process that is started again may not be strict any more
	Command            bool          // the program is told its ids by idalloc's commands
	Partitions         int           // how many partitions there are, 0 for a workload without
	Strategy           string        // by which they are divided
	Stubborn           float64       // of a pod not to know when its work on some partitions has stopped
	InProcess          bool          // it is known that work on partitions ends with its process
	Unaware            bool          // every other revision works on no partitions
	After              time.Duration // how long what went wrong stays so after the last fault
	Controllers        int           // how many of idalloc-controller run
	Elects             bool          // they elect one that acts
	By                 [2]string     // who locks for the pods of even and of odd templates: the value of their label, empty for peers
	FirstNumbers       [2]string     // the first machine numbers for which the pods of even and of odd templates ask, empty for none
	ReuseAfter         time.Duration // how long the id of a pod that has ended rests
	Budget             bool          // a budget lets one pod at a time be unavailable
}

// Fits reports whether p is of the kind that the words ask for: strict, default, linked or command (who tells the
// ids), partitions, two controllers, gated pods, agents or peers, migrates (others lock for the next revision), or a resource.
func (p Profile) Fits(words []string) bool {
	is := map[string]bool{
		p.Resource: true, "strict": p.FenceAfter > 0, "default": p.FenceAfter == 0, "linked": !p.Command, "command": p.Command, "partitions": p.Partitions > 0,
		"two": p.Controllers > 1, "gated": p.Has(receipt.ByController), "agents": p.Has(receipt.ByAgent), "peers": p.Has(""), "migrates": p.By[0] != p.By[1],
	}
	return !slices.ContainsFunc(words, func(word string) bool { return !is[word] })
}

// Draw draws what a history is about.
func Draw(d *dice.Dice) Profile {
	p := Profile{
		Resource:  dice.Pick(d, []string{object.Deployments, object.Deployments, object.Deployments, object.Deployments, object.StatefulSets, object.StatefulSets, object.ReplicaSets, object.Jobs}),
		Count:     d.Between(1, 4),
		Nodes:     d.Between(2, 3),
		Start:     d.Chance(0.25),
		Latency:   d.Span(500*time.Microsecond, 30*time.Millisecond),
		WatchLag:  d.Span(time.Millisecond, 300*time.Millisecond),
		CacheLag:  d.Span(time.Millisecond, 2*time.Second),
		WatchList: d.Chance(0.8),
		Grace:     dice.Pick(d, []time.Duration{5 * time.Second, 30 * time.Second}),
		Stop:      d.Span(time.Millisecond, 2*time.Second),
		Chaos:     d.Span(time.Minute, 6*time.Minute),
	}
	p.HandsOver = !p.Start || d.Chance(0.7)
	if d.Chance(0.35) {
		p.FenceAfter = d.Span(3*time.Second, 30*time.Second)
	}
	p.Crowded = d.Chance(0.5)
	if d.Chance(0.3) {
		p.Skew = 3 * time.Hour
	} else if p.Crowded || d.Chance(0.4) {
		p.Skew = d.Span(0, 5*time.Second)
	}
	if d.Chance(0.1) {
		p.Ahead = d.Span(24*time.Hour, 400*24*time.Hour)
		p.Skew = max(p.Skew, time.Second)
	}
	if p.Crowded {
		p.Count = d.Between(1, 2)
		p.Chaos = d.Span(15*time.Second, 75*time.Second)
	}
	p.Surge, p.Unavailable = d.Between(0, 2), d.Between(0, 1)
	if !p.HandsOver || p.Surge == 0 {
		p.Unavailable = max(1, p.Unavailable)
	}
	p.SlowStop = d.Chance(0.2) || (p.FenceAfter > 0 && d.Chance(0.4))
	p.PageSize = dice.Pick(d, []int{0, 0, 1, 2, 3})
	vary := d.Next()
	p.vary(dice.Derive(vary, "vary"))
	p.divide(dice.Derive(vary, "partitions"))
	return p
}

// DrawControlled draws what a history with controllers is about.
func DrawControlled(d *dice.Dice) Profile {
	p := Draw(d)
	d = dice.Derive(d.Next(), "controllers")
	p.Controllers = d.Between(1, 2)
	p.Elects = d.Chance(0.3 * float64(p.Controllers))
	const peer, gated, agent = "", receipt.ByController, receipt.ByAgent
	if p.By = dice.Pick(d, [][2]string{
		{gated, gated}, {gated, peer}, {peer, gated}, {agent, agent}, {agent, agent}, {agent, peer}, {peer, agent}, {agent, gated}, {gated, agent},
	}); !p.Rolls() {
		p.By[0] = p.By[1]
		if p.By[0] == peer {
			p.By = [2]string{agent, agent}
		}
	}
	switch beside := p.Has(gated) && p.By[0] != p.By[1] && d.Chance(0.5); { // gated pods work on no partitions and have no strict mode
	case beside:
		p.Unaware = false
	case p.Has(gated):
		p.Keeps = p.Keeps && p.Partitions == 0
		p.Partitions, p.Strategy, p.Stubborn, p.Unaware = 0, "", 0, false
	}
	if p.Has(gated) {
		p.FenceAfter, p.FenceOther, p.Mixed, p.Loosens = 0, 0, false, false
	}
	if p.Surge > 0 && p.Stubborn == 0 && (p.HandsOver || p.By == [2]string{gated, gated}) {
		p.Unavailable = d.Between(0, 1)
	}
	p.Budget = d.Chance(0.25)
	if d = dice.Derive(d.Next(), "numbers"); p.Has(gated) && d.Chance(0.6) {
		p.FirstNumbers = dice.Pick(d, [][2]string{{"1024", "1024"}, {"1024", "1025"}, {"1025", "1024"}, {"3", "1"}, {"", "7"}})
	}
	if p.By == [2]string{gated, gated} && d.Chance(0.3) {
		p.ReuseAfter = d.Span(time.Second, 8*time.Second)
	}
	return p
}

// Has reports whether pods of some revision have this label.
func (p Profile) Has(by string) bool { return p.By[0] == by || p.By[1] == by }

// vary draws how the workload is run and what its programs are like.
func (p *Profile) vary(d *dice.Dice) {
	p.Keeps = !p.Start && d.Chance(0.2)
	if p.Start && p.HandsOver && d.Chance(0.3) {
		p.Reluctant = 0.2 + d.Float()/2
	}
	p.Recreate = p.Resource == object.Deployments && d.Chance(0.15)
	p.Ordered = p.Resource == object.StatefulSets && d.Chance(0.4)
	p.Indexed = p.Resource == object.Jobs && d.Chance(0.5)
	if p.Mixed = p.FenceAfter > 0 && p.Rolls() && d.Chance(0.3); p.Mixed {
		p.FenceOther = dice.Pick(d, []time.Duration{0, max(3*time.Second, p.FenceAfter/2)})
	}
	if d.Chance(0.5) { // what a pod waits for beyond a fault is longer than that in strict mode
		p.After = d.Span(0, 30*time.Second+3*p.FenceAfter)
		if d.Chance(0.4) { // long enough for what has to happen by itself
			p.After += d.Span(time.Minute, 6*time.Minute)
		}
	}
	if d.Chance(0.3) {
		p.Warm = d.Span(time.Second, 40*time.Second)
	}
	if !p.Crowded && d.Chance(0.06) {
		p.Count = d.Between(9, 14) // more than are confirmed dead at once
	}
	if p.Command = !p.Start && d.Chance(0.2); p.Command {
		p.Keeps, p.HandsOver = false, p.FenceAfter > 0 || d.Chance(0.5)
		p.SlowStop = p.SlowStop && p.HandsOver // without a hook idalloc does not wait for it
		if !p.HandsOver {
			p.Unavailable = max(1, p.Unavailable)
		}
	}
	p.Loosens = p.FenceAfter > 0 && !p.Command && d.Chance(0.15)
	p.Chapters = d.Between(1, 5)
}

// divide draws what the programs divide among themselves besides.
func (p *Profile) divide(d *dice.Dice) {
	if p.Start || !d.Chance(0.45) {
		return
	}
	p.Partitions, p.Strategy = d.Between(1, 6), dice.Pick(d, []string{"sticky", "sticky", "range", "primary", "external"})
	p.Keeps = !p.Command // the work of one id need not stop when others come
	p.Unaware = p.Rolls() && d.Chance(0.3)
	if d.Chance(0.15) {
		p.Stubborn = d.Float()
		p.Unavailable = max(1, p.Unavailable) // such a pod does not hand over
	}
	if p.Command && !p.HandsOver {
		p.Stubborn = 1 // idalloc does not know when the work has stopped
	}
	p.InProcess = d.Chance(0.7)
}

// Divides reports whether a revision's pods work on partitions.
func (p Profile) Divides(template int) bool {
	return p.Partitions > 0 && (!p.Unaware || template%2 == 1) && p.By[template%2] != receipt.ByController
}

// Fence is the fence-after of a revision's pods.
func (p Profile) Fence(template int) time.Duration {
	if p.Mixed && template%2 == 0 {
		return p.FenceOther
	}
	return p.FenceAfter
}

// lead is how long before fence-after a command stops its work, as it does by default. A linked program has ten seconds after it.
func (p Profile) lead() time.Duration {
	if p.Command {
		return p.shortest() / 3
	}
	return 0
}

// shortest is the fence-after of those strict pods that have the shortest one.
func (p Profile) shortest() time.Duration {
	if p.Mixed && p.FenceOther > 0 {
		return min(p.FenceAfter, p.FenceOther)
	}
	return p.FenceAfter
}

// Survives is for how long the API server may give no answer, be it that a connection says nothing, and no strict process loses its id: what
// docs/outages.md promises, by a clock that is fast, at a server that needs a moment.
func (p Profile) Survives() time.Duration {
	const moment = 500 * time.Millisecond
	f := p.shortest()
	again := min(max(f/60, 200*time.Millisecond), 10*time.Second)
	ping := max(f/10, 500*time.Millisecond) // until a process finds out that its last request has no answer
	return (f-p.lead())*97/100 - f/12 - again - ping - moment
}

// SurvivesSlow is how long each answer may take.
func (p Profile) SurvivesSlow() time.Duration {
	return min((p.shortest()-p.lead())*45/100, 14*time.Second)
}

// Strict reports whether all processes are in strict mode.
func (p Profile) Strict() bool {
	return p.FenceAfter > 0 && (!p.Mixed || p.FenceOther > 0) && !p.Loosens
}

// HasOrdinals reports whether a pod takes no other slot than its own.
func (p Profile) HasOrdinals() bool {
	return p.Resource == object.StatefulSets || (p.Resource == object.Jobs && p.Indexed)
}

// Rolls reports whether the workload replaces its pods when its template changes.
func (p Profile) Rolls() bool {
	return p.Resource == object.Deployments || p.Resource == object.StatefulSets
}
