package agent

import "github.com/idalloc/idalloc/pkg/identity"

// stops says which numbers of stops the program is told of. The agent's lock guards it.
type stops struct {
	// last is the highest number so far. save keeps it for the next process of the pod, before the program can know it. It may be nil.
	last int
	save func(number int) error
	// told says that the program reports over HTTP when it has stopped. Only then does an identity show the number of a drain.
	told bool
	// drain is the number of the drain that is shown, 0 if there is none. asking is that of the stop of all work that the program is to
	// report now, 0 if there is none.
	drain, asking int
}

// keep takes in the number of a stop.
func (s *stops) keep(number int) error {
	if number <= s.last {
		return nil
	}
	s.last = number
	if s.save == nil {
		return nil
	}
	return s.save(number)
}

// of returns the identity as it is shown. As long as the program is to report that all work has stopped, the state is draining, whatever the
// reason: the program reports it only then. A drain that has not come to its end in time keeps its number until it has another one.
func (s *stops) of(id identity.Identity) (identity.Identity, error) {
	if s.asking > 0 && !id.Assigned() {
		id = id.Without(identity.StateDraining)
		id.Stop = s.asking
	}
	err := s.keep(max(id.Stop, id.Partitions.Stop))
	if id.State != identity.StateDraining {
		s.drain = 0
		return id, err
	}
	s.drain = max(s.drain, id.Stop)
	id.Stop = 0
	if s.told {
		id.Stop = s.drain
	}
	return id, err
}

// keepNumber takes in the number of a stop.
func (a *agent) keepNumber(number int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stops.keep(number)
}

// ask has the program asked over HTTP to report that all its work has stopped, until it is called with 0.
func (a *agent) ask(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops.asking = number
	a.showNext()
}
