package pace

import (
	"math"
	"time"
)

const (
	// maxWindow bounds how long a pod waits for its turn to plan.
	maxWindow = 10 * time.Second
	// planCost is how many request latencies pass from the start of a plan until the others hear of its write: one read, two
	// lists, one write, one watch event.
	planCost = 5
	// slotDelay for each slot of the owner, at most maxSlotDelay in all, is what planners wait at the least: a plan lists
	// as many pods and its write goes to as many watchers, and waiters get what comes free meanwhile with one write.
	slotDelay    = 500 * time.Microsecond
	maxSlotDelay = time.Second
	// takeTime for each pod that takes its slot at the same time, beyond the unqueued first, bounds for how long they are spread:
	// it is what a small API server needs for two requests. One user's requests wait in 6 queues of 50, says
	// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/ of the defaults.
	takeTime = 5 * time.Millisecond
	unqueued = 250
	// watchDelay for each pod that claims, at most maxWatchDelay, is for how long watches that are not urgent are spread.
	watchDelay    = 10 * time.Millisecond
	maxWatchDelay = 10 * time.Second
	// LookAgain is how long a waiter trusts its watches, give or take a third at random.
	LookAgain = 30 * time.Second
)

// Pace is what one process has measured. It is not safe for concurrent use.
type Pace struct {
	random func() float64
	// patience is this process's random part of what Longer adds.
	patience float64
	// request is how long a recent request took, quickest the shortest time of all: what the server needs when it is not busy.
	request, quickest time.Duration
	// setup is how long the first requests took, up to the first read of the owner. All pods that start together have a share in it.
	setup time.Duration
	// plan is how long the last plan took, from its lists to the answer to its write.
	plan time.Duration
}

// New returns the pace of a process that has measured nothing. random returns numbers in [0, 1).
func New(random func() float64) *Pace { return &Pace{random: random, patience: random()} }

// Read notes that a read of the owner took this long, and how long the process has been asking by now.
func (p *Pace) Read(took, asking time.Duration) {
	p.request = took
	if p.setup == 0 {
		p.setup = asking
	}
	if p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
}

// Planned notes how long a plan took.
func (p *Pace) Planned(took time.Duration) { p.plan = took }

// Scale is about how long a plan takes until the others hear of it, of an owner with so many slots.
func (p *Pace) Scale(slots int) time.Duration { return max(p.request, p.plan, slotScale(slots)) }

// Afresh is Scale where a request that was measured just now says more than what was measured when all started.
func (p *Pace) Afresh(request time.Duration, slots int) time.Duration {
	return min(max(request, slotScale(slots)), maxSlotDelay)
}

func slotScale(slots int) time.Duration { return min(time.Duration(slots)*slotDelay, maxSlotDelay) }

// Loaded is Scale if the server stays as slow as it was at the last request.
func (p *Pace) Loaded() time.Duration { return max(planCost*p.request, p.plan) }

// Calm is Scale when not all pods start at once, as they did when the last request may have been measured.
func (p *Pace) Calm() time.Duration {
	return max(planCost*min(p.request, 4*p.quickest), min(p.plan, maxSlotDelay))
}

// Window draws how long to wait before planning, when about n pods want to plan at once and scale is how long a plan takes
// until the others hear of it. The distribution is the truncated exponential of J. Nonnenmacher and E. W. Biersack, "Scalable
// feedback for large groups", IEEE/ACM Transactions on Networking 7(3), 1999: with parameter lambda = ln(n) + 1 only a few timers
// fire before the others hear of the first one's result, however many there are. Its length is lambda times scale, so that
// about three plan.
func (p *Pace) Window(n int, scale time.Duration) time.Duration {
	if n <= 1 {
		return 0
	}
	lambda := math.Log(float64(n)) + 1
	length := min(float64(scale)*lambda, float64(maxWindow))
	return time.Duration(length / lambda * math.Log1p(p.random()*math.Expm1(lambda)))
}

// Queue draws how long one of n pods waits before it takes its slot, which all of them hear of at one moment. If all sent what a
// take needs at once, the API server would refuse what does not fit into its queues, and have it come again seconds later.
func (p *Pace) Queue(n int) time.Duration {
	longest := min(2*p.setup, time.Duration(max(0, n-unqueued))*takeTime)
	return time.Duration(p.random() * float64(longest))
}

// Watch draws how long one of n pods that have just got their slots waits before it starts a watch that is not urgent.
func (p *Pace) Watch(n int) time.Duration {
	return time.Duration(p.random() * float64(min(time.Duration(n)*watchDelay, maxWatchDelay)))
}

// LookAgain draws how long a waiter trusts its watches.
func (p *Pace) LookAgain() time.Duration {
	return LookAgain + time.Duration((p.random()-0.5)*2/3*float64(LookAgain))
}

// Longer adds up to a third to d, the same part each time.
func (p *Pace) Longer(d time.Duration) time.Duration {
	return d + time.Duration(p.patience/3*float64(d))
}

// Earlier takes up to an eighth from d, so that a thousand processes do not ask at the same moments.
func (p *Pace) Earlier(d time.Duration) time.Duration {
	return time.Duration((1 - p.random()/8) * float64(d))
}

// Part draws a time between d and twice d.
func (p *Pace) Part(d time.Duration) time.Duration {
	return time.Duration((1 + p.random()) * float64(d))
}

// Backoff returns one that has not failed yet.
func (p *Pace) Backoff() *Backoff { return &Backoff{random: p.random} }
