package agent

import "sync"

// pausing passes on requests to pause the work on partitions and to resume it. Only the latest request counts.
type pausing struct {
	// save stores the request for the next process of the pod.
	save   func(paused bool) error
	mu     sync.Mutex
	wishes chan bool
}

func newPausing(save func(paused bool) error) *pausing {
	return &pausing{save: save, wishes: make(chan bool, 1)}
}

// pause pauses the work on partitions, or resumes it.
func (p *pausing) pause(paused bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.save(paused); err != nil {
		return err
	}
	select {
	case <-p.wishes: // the previous request was not read yet
	default:
	}
	p.wishes <- paused
	return nil
}
