package pace

import (
	"math"
	"time"
)

const (
	// maxWindow bounds how long a pod waits for its turn to plan.
	maxWindow = 10 * time.Second
	// planCost is the number of request latencies from the start of a plan until the other pods hear of its write: one
	// read, two lists, one write, one watch event.
	planCost = 5
	// slotDelay, for each slot of the owner, is the shortest scale of the wait before a plan. A plan lists that many
	// pods, and its write goes to that many watchers. While a planner waits, more slots may come free, and one write
	// then gives all of them. maxSlotDelay bounds the sum.
	slotDelay    = 500 * time.Microsecond
	maxSlotDelay = time.Second
	// takeTime is the time that a small API server needs for the two requests of a take. Pods that take their slots at
	// the same moment are spread over this time for each pod beyond the first takeAtOnce. The requests of that many
	// fit into the server's queues for one user: by default 6 queues of 50, according to
	// https://kubernetes.io/docs/concepts/cluster-administration/flow-control/.
	takeTime   = 5 * time.Millisecond
	takeAtOnce = 250
	// watchDelay is the time, for each claiming pod, over which watches that are not urgent are spread. maxWatchDelay bounds the sum.
	watchDelay    = 10 * time.Millisecond
	maxWatchDelay = 10 * time.Second
	// minConfirm and maxConfirm bound Confirm. confirmCost is how many consecutive requests Confirm allows for: a confirmation is a list and a write,
	// behind those of other pods.
	minConfirm  = 2 * time.Second
	maxConfirm  = 10 * time.Second
	confirmCost = 20
	// minStandBack and maxStandBack bound StandBack.
	minStandBack = 30 * time.Second
	maxStandBack = 10 * time.Minute

	// ReadAgain is the average time after which a waiter reads everything again, even if its watches say nothing.
	ReadAgain = 30 * time.Second
)

// Pace holds the measurements of one process, and computes the waits that follow from them. It is not safe for concurrent use.
type Pace struct {
	random func() float64
	// patience, in [0, 1), is this process's share of what Longer may add.
	patience float64
	// request is how long a recent request took. quickest is the shortest such time so far: the time that the server
	// needs when it is not busy.
	request, quickest time.Duration
	// setup is the time of the first requests, up to the answer to the first read of the owner. It is long if many pods
	// start together.
	setup time.Duration
	// plan is how long the last plan took, from its lists to the answer to its write.
	plan time.Duration
}

// New returns the pace of a process that has measured nothing. random must return numbers in [0, 1).
func New(random func() float64) *Pace { return &Pace{random: random, patience: random()} }

// Read records a read of the owner: took is its duration, and asking is the time since the process sent its first request.
func (p *Pace) Read(took, asking time.Duration) {
	p.request = took
	if p.setup == 0 {
		p.setup = asking
	}
	if p.quickest == 0 || took < p.quickest {
		p.quickest = took
	}
}

// Planned records how long a plan took.
func (p *Pace) Planned(took time.Duration) { p.plan = took }

// Scale estimates the time from the start of a plan until the other pods hear of it, for an owner with this many slots.
func (p *Pace) Scale(slots int) time.Duration { return max(p.request, p.plan, slotScale(slots)) }

func slotScale(slots int) time.Duration { return min(time.Duration(slots)*slotDelay, maxSlotDelay) }

// Loaded is Scale if the server stays as slow as it was at the last request.
func (p *Pace) Loaded() time.Duration { return max(planCost*p.request, p.plan) }

// Calm is Scale for a time when pods do not all start at once. The last request may have been measured while they did.
func (p *Pace) Calm() time.Duration {
	return max(planCost*min(p.request, 4*p.quickest), min(p.plan, maxSlotDelay))
}

// Window draws the time to wait before a plan. About n pods want to plan at once. scale is the time from the start of a plan until the other pods hear of
// it.
//
// The distribution is the truncated exponential of J. Nonnenmacher and E. W. Biersack, "Scalable feedback for large groups", IEEE/ACM Transactions on
// Networking 7(3), 1999. Its parameter is lambda = ln(n) + 1. Then only a few timers fire before the other pods hear of the first plan, for any n. Its
// length is lambda times scale, so that about three pods plan.
func (p *Pace) Window(n int, scale time.Duration) time.Duration {
	if n <= 1 {
		return 0
	}
	lambda := math.Log(float64(n)) + 1
	length := min(float64(scale)*lambda, float64(maxWindow))
	return time.Duration(length / lambda * math.Log1p(p.random()*math.Expm1(lambda)))
}

// Queue draws the time that one of n pods waits before it takes its slot. All n pods hear of their slots at the same moment. If all of them took at once,
// the API server would refuse the requests that do not fit into its queues, and the pods would have to repeat them seconds later.
func (p *Pace) Queue(n int) time.Duration {
	longest := min(2*p.setup, time.Duration(max(0, n-takeAtOnce))*takeTime)
	return time.Duration(p.random() * float64(longest))
}

// Watch draws the time that one of n pods with new slots waits before it starts a watch that is not urgent.
func (p *Pace) Watch(n int) time.Duration {
	return time.Duration(p.random() * float64(min(time.Duration(n)*watchDelay, maxWatchDelay)))
}

// ReadAgain draws the time after which a waiter reads everything again: 20 to 40 s.
func (p *Pace) ReadAgain() time.Duration {
	return ReadAgain + time.Duration((p.random()-0.5)*2/3*float64(ReadAgain))
}

// Longer adds up to a third to d. The part differs between processes and is constant within one.
func (p *Pace) Longer(d time.Duration) time.Duration {
	return d + time.Duration(p.patience/3*float64(d))
}

// Confirm draws how long a process waits for the controller to confirm its write, before it sends requests of its own. request is how long the last request
// took: if that was long, the server is busy, and so is the controller.
func (p *Pace) Confirm(request time.Duration) time.Duration {
	return min(max(minConfirm, p.AtLeast(confirmCost*request)), maxConfirm)
}

// StandBack returns how long a process whose program failed this often in a row waits before it has another pod's work stopped again. The time doubles with
// each failure.
func (p *Pace) StandBack(failures int) time.Duration {
	if failures <= 0 {
		return 0 // a plan counted failures, and the receipt was changed since
	}
	return p.Longer(min(minStandBack<<min(failures-1, 8), maxStandBack))
}

// Earlier subtracts up to an eighth from d, at random, so that a thousand processes do not send a request at the same
// moment.
func (p *Pace) Earlier(d time.Duration) time.Duration {
	return time.Duration((1 - p.random()/8) * float64(d))
}

// AtLeast draws a time between d and twice d.
func (p *Pace) AtLeast(d time.Duration) time.Duration {
	return time.Duration((1 + p.random()) * float64(d))
}

// Backoff returns a Backoff that starts from 0.
func (p *Pace) Backoff() *Backoff { return &Backoff{random: p.random} }

// Soonest returns the first of these times that is after now, the zero time if none is.
func Soonest(now time.Time, all ...time.Time) (at time.Time) {
	for _, t := range all {
		if t.After(now) && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}
