package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/idalloc/idalloc"
	"github.com/idalloc/idalloc/test/bench/played"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

// releaseTimeout is how long an instance may take to give its slot back, as of Run's default.
const releaseTimeout = 10 * time.Second

// player runs the pods of a workload: every pod is an instance of idalloc with a connection of its own. A pod is Ready while it has an id. A pod
// that is deleted gives its slot back, unless its node hangs: then its instance ends without a word.
type player struct {
	*played.Node

	w *workload
	// see is told of everything that happens to the instances, from many goroutines. If it is nil, pods run without idalloc, and are Ready at once.
	see func(sighting)
	// board is told who works on which partition. It is nil without partitions.
	board *board
}

// sighting is one moment of one instance.
type sighting struct {
	at  time.Time
	pod string
	// started is the moment at which the instance began, ended that at which it stopped to act; otherwise
	// id is what it published.
	started, ended bool
	id             idalloc.Identity
}

// play starts to run the workload's pods, until Stop.
func play(ctx context.Context, w *workload, hangs bool, see func(sighting), b *board) (*player, error) {
	p := &player{w: w, see: see, board: b}
	p.Node = &played.Node{Live: p.live, Hangs: hangs}
	err := p.Run(ctx, w.env, w.Name)
	return p, err
}

// live holds an id for a pod until life ends.
func (p *player) live(all, life context.Context, pod *corev1.Pod) error {
	config, err := p.w.connection(all)
	if err != nil {
		return err
	}
	if p.see == nil {
		p.Note(all, p.Report(all, pod.Name, true))
		<-life.Done()
		return nil
	}
	p.see(sighting{at: time.Now(), pod: pod.Name, started: true})
	defer func() { p.see(sighting{at: time.Now(), pod: pod.Name, ended: true}) }()
	return p.instance(all, life, config, pod)
}

func (p *player) instance(all, life context.Context, config *rest.Config, pod *corev1.Pod) error {
	o := idalloc.Options{
		PodName: pod.Name, PodNamespace: p.w.Name, Config: config, Log: quiet(),
		Partitions: p.board != nil,
		Stop: func(_ context.Context, s idalloc.Stopping) error { // there is no work to stop
			if p.board != nil {
				p.board.stopped(pod.Name, s.Partitions)
			}
			return nil
		},
	}
	i, err := idalloc.Start(life, o)
	if err != nil && life.Err() == nil {
		return fmt.Errorf("start: %w", err)
	}
	if err != nil { // it was deleted before
		return nil
	}
	p.publish(all, life, i, pod)
	if p.Hangs || all.Err() != nil {
		abandon(all, i)
		return nil
	}
	release, cancel := context.WithTimeout(all, releaseTimeout)
	defer cancel()
	_ = i.Close(release) // if it fails, its slot comes free when the pod is gone
	return nil
}

// publish follows what an instance publishes, and makes its pod Ready while it has an id.
func (p *player) publish(all, life context.Context, i *idalloc.Instance, pod *corev1.Pod) {
	ready, news := false, make(chan bool, 1)
	var reports sync.WaitGroup
	reports.Go(func() {
		for is := range news {
			p.Note(all, p.Report(all, pod.Name, is))
		}
	})
	defer reports.Wait()
	defer close(news)
	for {
		select {
		case <-life.Done():
			if p.board != nil {
				p.board.look(pod.Name, func() []idalloc.Partition { return nil })
			}
			p.see(sighting{at: time.Now(), pod: pod.Name, id: idalloc.Identity{}})
			return
		case id, more := <-i.Changes():
			if !more {
				return
			}
			p.see(sighting{at: time.Now(), pod: pod.Name, id: id})
			if p.board != nil {
				p.board.look(pod.Name, i.Owned)
			}
			if id.Assigned() != ready {
				ready = id.Assigned()
				select {
				case <-news: // it is out of date
				default:
				}
				news <- ready
			}
		}
	}
}

// ready waits until n pods have reported an id and there are no others.
func (p *player) ready(ctx context.Context, n int) error {
	return p.w.until(ctx, func(ctx context.Context) (bool, error) {
		pods, err := p.w.Pods(ctx, deployment)
		if err = errors.Join(err, p.Err()); err != nil || len(pods) != n {
			return false, err
		}
		for i := range pods {
			if pods[i].DeletionTimestamp != nil || !suite.Ready(&pods[i]) {
				return false, nil
			}
		}
		return true, nil
	})
}
