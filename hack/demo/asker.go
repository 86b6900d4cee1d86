package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/identity"
)

const (
	askAgain   = 100 * time.Millisecond
	longPoll   = "10s"
	askTimeout = 15 * time.Second
)

// asker asks every pod who it is, over the HTTP of its watcher. A long poll answers when the identity
// changes, so nothing is asked twice.
type asker struct {
	observer *observer

	mu   sync.Mutex
	stop map[types.UID]context.CancelFunc
}

// follow asks a pod as long as it exists.
func (a *asker) follow(ctx context.Context, pod *corev1.Pod, gone bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	stop, asked := a.stop[pod.UID]
	switch {
	case gone && asked:
		stop()
		delete(a.stop, pod.UID)
	case !gone && !asked && pod.Status.PodIP != "" && ctx.Err() == nil:
		ctx, stop := context.WithCancel(ctx)
		a.stop[pod.UID] = stop
		uid, address := pod.UID, net.JoinHostPort(pod.Status.PodIP, strconv.Itoa(httpPort))
		a.observer.running.Go(func() { a.ask(ctx, uid, address) })
	}
}

func (a *asker) ask(ctx context.Context, uid types.UID, address string) {
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	etag := ""
	for ctx.Err() == nil {
		id, next, err := identify(ctx, client, address, etag)
		if err != nil {
			etag = ""
			a.observer.change(func() { delete(a.observer.says, uid) })
			again(ctx)
			continue
		}
		etag = next
		if id != nil {
			a.observer.change(func() { a.observer.says[uid] = *id })
		}
	}
}

// identify returns nil and no error when nothing changed.
func identify(ctx context.Context, client *http.Client, address, etag string) (id *identity.Identity, next string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/v1/identity?wait="+longPoll, http.NoBody)
	if err != nil {
		return nil, "", err
	}
	if etag != "" {
		req.Header.Set("If-None-Match", etag)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	switch resp.StatusCode {
	case http.StatusNotModified:
		return nil, etag, nil
	case http.StatusOK:
		id = &identity.Identity{}
		return id, resp.Header.Get("ETag"), json.NewDecoder(resp.Body).Decode(id)
	default:
		return nil, "", fmt.Errorf("%s answers %s", address, resp.Status)
	}
}

// again waits before a pod that did not answer is asked again.
func again(ctx context.Context) {
	timer := time.NewTimer(askAgain)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
