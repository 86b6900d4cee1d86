package reconciler

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/idalloc/idalloc/controller/internal/decision"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

func TestTheCountStandsStill(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var c counted
	for _, tc := range []struct {
		name             string
		at, count, after int
		settled          int
	}{
		{"the controller starts", 0, 3, 30, 30},
		{"nothing changes", 20, 3, 30, 30},
		{"the count changes much later", 100, 5, 30, 130},
		{"and again", 115, 6, 30, 145},
		{"and back", 130, 5, 30, 160},
		{"the user wants it sooner", 140, 5, 5, 135},
		{"it changes again after that", 200, 6, 30, 230},
		{"it changes all the time", 215, 7, 30, 245},
	} {
		got := c.settles(tc.count, time.Duration(tc.after)*time.Second, at(tc.at))
		if !got.Equal(at(tc.settled)) {
			t.Errorf("%s: settled after %s", tc.name, got.Sub(start))
		}
	}
}

// A count that changes every 15 seconds never stands still. Each pod waits ten times the user's time, since its containers first had another count.
func TestAPodWaitsForAStableCountForALimitedTime(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	pod := func(name, way, started string) decision.Pod {
		p := decision.Pod{OnCount: way}
		p.Name, p.StartCount = name, started
		return p
	}
	var c counted
	for s := 0; s <= 400; s += 15 {
		count := 3 + s
		c.settles(count, 30*time.Second, at(s))
		turned := "3"
		if s >= 150 { // its turn came then
			turned = "153"
		}
		pods := []decision.Pod{
			pod("restarts", assignment.OnCountRestart, "3"), pod("is replaced", assignment.OnCountReplace, turned),
			pod("keeps", assignment.OnCountKeep, "3"), pod("is new", assignment.OnCountRestart, strconv.Itoa(count)),
		}
		c.bound(pods, 30*time.Second, at(s))
		if s == 0 {
			continue
		}
		want := map[string]time.Time{"restarts": at(315), "is replaced": at(315)}
		if s == 150 {
			want["is replaced"] = time.Time{}
		} else if s > 150 {
			want["is replaced"] = at(465)
		}
		for _, p := range pods {
			if !p.SettledAt.Equal(want[p.Name]) {
				t.Errorf("after %d s: the pod that %s waits until %s", s, p.Name, p.SettledAt.Sub(start))
			}
		}
	}
}

// A count that comes back for a short time is one more change. One that stays is none.
func TestAShortReturnOfTheCountDoesNotBeginTheWaitAgain(t *testing.T) {
	start := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	var c counted
	for _, tc := range []struct{ at, count, until int }{
		{0, 10, 0}, {25, 11, 325}, {50, 10, 325}, {75, 11, 325}, {100, 10, 325}, {131, 10, 0}, {150, 11, 450},
	} {
		c.settles(tc.count, 30*time.Second, at(tc.at))
		pods := []decision.Pod{{OnCount: assignment.OnCountRestart}}
		pods[0].StartCount = "10"
		c.bound(pods, 30*time.Second, at(tc.at))
		if got := pods[0].SettledAt; got.IsZero() != (tc.until == 0) || tc.until > 0 && !got.Equal(at(tc.until)) {
			t.Errorf("after %d s with count %d it waits until %s", tc.at, tc.count, got.Sub(start))
		}
	}
}

// What decisions about a changed count and about machine numbers need is still there when the cache has trimmed a pod.
func TestTheCacheKeepsWhatTurnsNeed(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u", Annotations: map[string]string{
		assignment.OnCountKey: assignment.OnCountRestart, receipt.StartCountKey: "3", receipt.TurnKey: "2 f00",
		assignment.FirstNumberKey: "1024", receipt.NumberKey: "1027",
	}}}
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{
		{Name: "setup", ContainerID: "containerd://1"}, {Name: assignment.CountWatcher, ContainerID: "containerd://70fba7807c1c4711"},
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "worker", ContainerID: "containerd://c1c4711"}, {Name: "other"}}
	for range 2 {
		if _, err := trimPod(pod); err != nil {
			t.Fatal(err)
		}
		q := passOf(t, nil).podOf(pod)
		if q.OnCount != assignment.OnCountRestart || q.StartCount != "3" || q.Turn != "2 f00" || q.Watcher != "70fba7807c1c" || q.Program != "c1c4711" || q.FirstNumber != 1024 || q.Number != "1027" {
			t.Errorf("the pod is %+v", q)
		}
	}
}
