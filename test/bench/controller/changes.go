package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// counts is what a watch showed of the counts that pods were told.
type counts struct {
	mu    sync.Mutex
	of    map[string]string // by pod
	times map[string]int
}

func (c *counts) see(events <-chan watch.Event) {
	for e := range events {
		pod, ok := e.Object.(*corev1.Pod)
		if !ok {
			continue
		}
		c.mu.Lock()
		if is := pod.Annotations[receipt.CountKey]; e.Type == watch.Deleted {
			delete(c.of, pod.Name)
		} else if is != "" && is != c.of[pod.Name] {
			c.of[pod.Name] = is
			c.times[pod.Name]++
		}
		c.mu.Unlock()
	}
}

// all reports whether n pods know the count.
func (c *counts) all(n int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, is := range c.of {
		if is != strconv.Itoa(n) {
			return false
		}
	}
	return len(c.of) == n
}

// measureChanges changes the count of one Deployment ten times a second, by one up and down, and prints how often each pod was told.
func (b *bench) measureChanges(ctx context.Context, ns string, c *running) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w, err := b.client.CoreV1().Pods(ns).Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	defer w.Stop()
	told := counts{of: map[string]string{}, times: map[string]int{}}
	go told.see(w.ResultChan())
	if err := poll(ctx, func(context.Context) (bool, error) { return told.all(b.pods), nil }); err != nil {
		return err
	}
	told.mu.Lock()
	clear(told.times)
	told.mu.Unlock()
	before, err := c.Sent(ctx)
	if err != nil {
		return err
	}
	changes, ticker := 0, time.NewTicker(100*time.Millisecond)
	defer ticker.Stop()
	for begin := time.Now(); time.Since(begin) < b.changes; <-ticker.C {
		changes++
		patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, b.pods+changes%2)
		if _, err := b.client.AppsV1().Deployments(ns).Patch(ctx, "worker-0", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	last := time.Now()
	if err := poll(ctx, func(context.Context) (bool, error) { return told.all(b.pods + changes%2), nil }); err != nil {
		return err
	}
	after, err := c.Sent(ctx)
	if err != nil {
		return err
	}
	told.mu.Lock()
	defer told.mu.Unlock()
	var times []int
	for _, n := range told.times {
		times = append(times, n)
	}
	slices.Sort(times)
	_, _ = fmt.Fprintf(b.out, "%d changes of the count in %v: each pod was told %d times (median), %d at most; the controller sent %d patches, %d lists and reads; all knew the last count after %v\n",
		changes, b.changes, times[len(times)/2], times[len(times)-1], after["PATCH"]-before["PATCH"], after["GET"]-before["GET"], time.Since(last).Round(10*time.Millisecond))
	return c.tell(ctx, 0)
}
