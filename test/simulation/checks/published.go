package checks

import (
	"slices"

	"github.com/idalloc/idalloc/pkg/allocator"
	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/world"
)

// published is what the judge knows of what processes publish: what workloads act under.
type published struct {
	// last is who published each id last, with which token.
	last map[thing]heldBy
	// under is the id that each process published last, and over that which it published to be over.
	under, over map[*world.Process]identity.Identity
	// stops are the stops under way that each process asked its work for.
	stops map[*world.Process][]allocator.Stop
}

func newPublished() published {
	return published{
		last: map[thing]heldBy{}, under: map[*world.Process]identity.Identity{}, over: map[*world.Process]identity.Identity{}, stops: map[*world.Process][]allocator.Stop{},
	}
}

// Told is told of every identity that a process publishes. A token goes with one lock: once a process has said that its id is over, it publishes no
// token for that id that is not higher. A drain may be called off.
func (j *Judge) Told(p *world.Process, id identity.Identity) {
	s := &j.says
	if !id.Assigned() {
		if was, had := s.under[p]; had && id.State != identity.StateDraining {
			s.over[p] = was
			delete(s.under, p)
		}
		return
	}
	is := thing{id.Owner, id.ID}
	if was, had := s.over[p]; had && was.Owner == id.Owner && was.ID == id.ID && id.Token <= was.Token {
		j.reportf(token, "id %d: %s publishes %d, although it has published that its id with %d is over", id.ID, p.ID, id.Token, was.Token)
	}
	if was, had := s.under[p]; !had || was.Owner != id.Owner || was.ID != id.ID || was.Token != id.Token {
		j.checkToken("published id", is, s.last, p, id.Token)
	}
	s.under[p] = id
}

// Asked is told of every stop that a process asks its work for. What it has published by then shows just that.
func (j *Judge) Asked(p *world.Process, stop allocator.Stop) {
	j.says.stops[p] = append(j.says.stops[p], stop)
	now := p.Shown
	owned, stopping := now.Partitions.Owned(), now.Partitions.Stopping()
	switch {
	case p.Dead: // what it publishes now does not count
	case stop.All && now.Assigned():
		j.reportf(shown, "%s asks its work to stop (stop %d), and shows id %d", p.ID, stop.Number, now.ID)
	case stop.All && now.State == identity.StateDraining && now.Stop != stop.Number:
		j.reportf(shown, "%s asks its work to stop (stop %d), and shows stop %d", p.ID, stop.Number, now.Stop)
	case stop.All || now.State == identity.StateFenced || now.State == identity.StateLost || now.State == identity.StateReleased:
	case !now.Assigned():
		j.reportf(shown, "%s asks its work on partitions %s to stop (stop %d), and shows the state %s", p.ID, stop.Partitions, stop.Number, now.State)
	case !stop.Partitions.Subset(stopping) || !owned.Intersect(stopping).Empty():
		j.reportf(shown, "%s asks its work on partitions %s to stop (stop %d), and shows that %s are to stop, and that it owns %s", p.ID, stop.Partitions, stop.Number, stopping, owned)
	}
}

// Left is told of partitions on which the work has stopped before its stop ended.
func (j *Judge) Left(p *world.Process, number int, set placement.Set) {
	for i, s := range j.says.stops[p] {
		if s.Number == number {
			j.says.stops[p][i].Partitions = s.Partitions.Minus(set)
		}
	}
}

// Answered is told of the end of a stop.
func (j *Judge) Answered(p *world.Process, stop allocator.Stop) {
	j.says.stops[p] = slices.DeleteFunc(j.says.stops[p], func(s allocator.Stop) bool { return s.Number == stop.Number })
}

// stopping returns the partitions on which a process has asked its work to stop.
func (s *published) stopping(p *world.Process) (set placement.Set) {
	for _, stop := range s.stops[p] {
		set = set.Union(stop.Partitions)
	}
	return set
}
