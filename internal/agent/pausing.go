package agent

import "sync"

// pausing passes on when the work on partitions is to pause, and when it is to go on. The last wish counts.
type pausing struct {
	// save keeps the wish for the next process of the pod.
	save   func(paused bool) error
	mu     sync.Mutex
	wishes chan bool
}

func newPausing(save func(paused bool) error) *pausing {
	return &pausing{save: save, wishes: make(chan bool, 1)}
}

// pause begins a pause of the work on partitions, or ends it.
func (p *pausing) pause(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.save(paused); err != nil {
		return err
	}
	select {
	case <-p.wishes: // it was not taken in yet
	default:
	}
	p.wishes <- paused
	return nil
}
