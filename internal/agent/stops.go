package agent

import "github.com/idalloc/idalloc/pkg/identity"

// stops tracks the numbers of stops that the program is told. The agent's lock guards it.
type stops struct {
	// last is the highest number so far. save stores it for the next process of the pod, before the program can know it; it may be nil.
	last int
	save func(number int) error
	// told: the program reports over HTTP when it has stopped. Only then does an identity show the number of a drain.
	told bool
	// drain is the number of the drain that is shown, or 0. asking is the number of the stop of all work that the program should report now, or 0.
	drain, asking int
}

// keep records the number of a stop.
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

// of returns the identity as it should be shown. While the program still has to report that all work has stopped, the state is draining for any reason, because
// the program reports only in that state. A drain that timed out keeps its number until it gets another one.
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

// keepNumber records the number of a stop.
func (a *agent) keepNumber(number int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.stops.keep(number)
}

// ask asks the program over HTTP to report that all its work has stopped. ask(0) ends the request.
func (a *agent) ask(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.stops.asking = number
	a.showNext()
}
