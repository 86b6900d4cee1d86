package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/idalloc/idalloc/pkg/identity"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/overlap"
)

const (
	// shareAddress is where the program answers whether its work has stopped. The containers of a pod share the loopback interface.
	shareAddress = "127.0.0.1:8085"
	// askTime bounds one question.
	askTime = 10 * time.Second
)

// share is a program that works on the partitions that the files name, and knows nothing of Kubernetes.
type share struct {
	files, logs, pod string

	// mu is held while the files are read and obeyed, so that nothing begins by what was read before something else stopped.
	mu      sync.Mutex
	working map[int]job
}

// job is the work on one partition.
type job struct {
	token  int64
	cancel context.CancelFunc
	// done is closed when the work has stopped; err is how it ended.
	done chan struct{}
}

// workByFiles works on partitions by the files until ctx ends, and answers the hook.
func workByFiles(ctx context.Context, files, logs, pod string) error {
	s := &share{files: files, logs: logs, pod: pod, working: map[int]job{}}
	// It listens before it works: who cannot reach it may know that nothing is worked on.
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", shareAddress)
	if err != nil {
		return err
	}
	answer := func(w http.ResponseWriter, r *http.Request) { s.answer(ctx, w, r) }
	server := &http.Server{Handler: http.HandlerFunc(answer), ReadHeaderTimeout: time.Second}
	go func() { _ = server.Serve(listener) }() // without it no partition moves, and the spec fails
	err = s.follow(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keep(nil)
	return errors.Join(err, server.Close())
}

// follow looks at the files again and again.
func (s *share) follow(ctx context.Context) error {
	ticker := time.NewTicker(identity.PollInterval)
	defer ticker.Stop()
	for {
		if err := s.obey(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// obey reads the files, stops what they do not name any more, waits until it has stopped, and begins what is new.
func (s *share) obey(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := identity.Read(s.files)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	wanted := map[int]int64{}
	for _, share := range now.Partitions.Shares() {
		for number := range share.Set.All() {
			wanted[number] = share.Token
		}
	}
	s.keep(wanted)
	if ctx.Err() != nil {
		return nil
	}
	for number, token := range wanted {
		if _, works := s.working[number]; works {
			continue
		}
		w, err := overlap.NewWriter(s.logs, s.pod+"#"+strconv.Itoa(number), os.Getenv("POD_UID"))
		if err != nil {
			return err
		}
		w.Interval = partitionInterval
		ctx, cancel := context.WithCancel(ctx)
		j := job{token: token, cancel: cancel, done: make(chan struct{})}
		s.working[number] = j
		go func() {
			defer close(j.done)
			if err := errors.Join(act(ctx, w, number, now.Partitions.Count, token), w.Close()); err != nil {
				log.Fatal(err) // a log with a gap proves nothing
			}
		}()
	}
	return nil
}

// keep stops all work but this, and waits until it has stopped.
func (s *share) keep(wanted map[int]int64) {
	stopping := maps.Clone(s.working)
	maps.DeleteFunc(stopping, func(number int, j job) bool {
		token, keeps := wanted[number]
		return keeps && token == j.token
	})
	for _, j := range stopping {
		j.cancel()
	}
	for number, j := range stopping {
		<-j.done
		delete(s.working, number)
	}
}

// answer says whether the work on the partitions of the question has stopped, or all work if it names none.
func (s *share) answer(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	set, err := placement.Parse(r.FormValue("partitions"), placement.MaxCount)
	if err == nil {
		err = s.obey(ctx)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for number := range s.working {
		if set.Empty() || set.Contains(number) {
			http.Error(w, fmt.Sprintf("the files still name partition %d", number), http.StatusConflict)
			return
		}
	}
	log.Printf("the work on %q has stopped, and %d partitions are left", set, len(s.working)) //nolint:gosec // a set prints as digits, commas and dashes
}

// askStopped is the drain hook: it fails unless the program of the pod's other container has stopped.
func askStopped(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	query := url.Values{"partitions": {os.Getenv("IDALLOC_PARTITIONS_STOP")}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+shareAddress+"/?"+query.Encode(), http.NoBody)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return nil // it does not run
	}
	if err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	return errors.Join(err, answer.Body.Close())
}
