package observe_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/internal/observe"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// cluster plays a cluster for an Observer.
type cluster struct {
	*observe.Observer

	now      time.Time
	version  int
	first    bool
	late     time.Duration // how late the watch shows a Lease
	findings []observe.Finding
}

func newCluster(level string) *cluster {
	c := &cluster{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), version: 100}
	c.Observer = observe.New(level, func() time.Time { return c.now }, func(f observe.Finding) { c.findings = append(c.findings, f) })
	return c
}

// pod is a pod with a receipt, which may be empty.
func (c *cluster) pod(name, text string, keys ...string) {
	c.version++
	m := &metav1.ObjectMeta{
		Namespace: "prod", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: strconv.Itoa(c.version), Annotations: map[string]string{}, Labels: map[string]string{},
	}
	if text != "" {
		m.Annotations[receipt.Key] = text
	}
	if r, err := receipt.Parse(text); err == nil && r.State == receipt.Locks {
		m.Labels[receipt.OwnerLabel], m.Labels[receipt.IDLabel] = "deployment.worker", strconv.Itoa(r.Share.ID)
	}
	for i := 0; i+1 < len(keys); i += 2 {
		of := m.Annotations
		if keys[i] == receipt.AssignLabel || keys[i] == receipt.OwnerLabel || keys[i] == receipt.IDLabel {
			of = m.Labels
		}
		if of[keys[i]] = keys[i+1]; keys[i+1] == "" {
			delete(of, keys[i])
		}
	}
	c.Pod(m, nil, c.first)
}

// says is a receipt of a pod: rest are fields of the JSON.
func says(pod, write, rest string) string {
	return fmt.Sprintf(`{"uid":"%s-uid","owner":"Deployment/worker",%s"write":%q}`, pod, rest, write)
}

// takes has a pod take a slot as its process does.
func (c *cluster) takes(pod string, id int) {
	c.pod(pod, "")
	c.pod(pod, says(pod, "w", ""))
	c.pod(pod, says(pod, "l", fmt.Sprintf(`"id":%d,`, id)))
	c.pod(pod, says(pod, "n", fmt.Sprintf(`"id":%d,"token":%d,`, id, c.version)))
}

// begins has the controller let a pod begin.
func (c *cluster) begins(pod string, id, count int) {
	const key, by = receipt.AssignLabel, receipt.ByController
	c.pod(pod, "", key, by)
	c.pod(pod, says(pod, "l", fmt.Sprintf(`"id":%d,`, id)), key, by)
	c.pod(pod, says(pod, "b", fmt.Sprintf(`"id":%d,"begun":true,`, id)), key, by, "idalloc.dev/id", strconv.Itoa(id), "idalloc.dev/start-count", strconv.Itoa(count))
}

func (c *cluster) lease(holder string, id int) {
	c.version++
	l := &observe.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: "prod", Name: fmt.Sprintf("idalloc-deployment.worker-%d", id), Labels: map[string]string{receipt.OwnerLabel: "deployment.worker"},
		Annotations: map[string]string{receipt.Key: says(holder, strconv.Itoa(c.version), fmt.Sprintf(`"id":%d,"strict":true,`, id))},
	}}
	l.Spec.HolderIdentity, l.Spec.Seconds = holder+"/"+holder+"-uid", 40
	l.Spec.RenewTime = new(metav1.NewMicroTime(c.now.Add(-c.late)))
	c.Lease(l, false, c.first)
}

func (c *cluster) rules() (rules []string) {
	for _, f := range c.findings {
		if !slices.Contains(rules, f.Rule) {
			rules = append(rules, f.Rule)
		}
	}
	return rules
}

func TestFaultsAreFound(t *testing.T) {
	gated := []string{receipt.AssignLabel, receipt.ByController}
	for name, fault := range map[string]struct {
		play func(c *cluster)
		rule string
	}{
		"two confirmed locks of one slot": {func(c *cluster) {
			c.takes("a", 3)
			c.takes("b", 3)
		}, "it notes what it holds"},
		"two confirmed locks of one partition": {func(c *cluster) {
			c.pod("a", says("a", "l", `"id":0,"partitions":"0-3 of 8",`))
			c.pod("a", says("a", "n", `"id":0,"partitions":"0-3 of 8","token":101,`+`"tokens":{"0-3":101},`))
			c.pod("b", says("b", "l", `"id":1,"partitions":"3-7 of 8",`))
			c.pod("b", says("b", "n", `"id":1,"partitions":"3-7 of 8","token":103,`+`"tokens":{"3-7":103},`))
		}, "it notes what it holds"},
		"a receipt is removed while its work goes on": {func(c *cluster) {
			c.takes("a", 3)
			c.pod("a", "")
		}, "A3: the work stays locked, and it notes no more"},
		"a receipt of another pod": {func(c *cluster) {
			c.takes("a", 3)
			c.pod("a", says("b", "x", `"id":3,`))
		}, "A3: the work stays locked, and it notes no more"},
		"the labels are removed": {func(c *cluster) {
			c.takes("a", 3)
			c.pod("a", says("a", "n", fmt.Sprintf(`"id":3,"token":%d,`, c.version-1)), receipt.OwnerLabel, "")
		}, "A3: the work stays locked, and it notes no more"},
		"an old receipt comes back": {func(c *cluster) {
			c.takes("a", 3)
			c.pod("a", says("a", "l", `"id":3,`))
		}, "a write"},
		"a token falls": {func(c *cluster) {
			c.takes("a", 3)
			c.Gone("a-uid")
			c.pod("b", "")
			c.pod("b", says("b", "l", `"id":3,`))
			c.pod("b", says("b", "n", `"id":3,"token":7,`))
		}, "the token is of this lock"},
		"an id before T3": {func(c *cluster) {
			c.pod("a", "", gated...)
			c.pod("a", says("a", "l", `"id":3,`), append(gated, "idalloc.dev/id", "3")...)
		}, "it has begun"},
		"an id that is not below the count": {func(c *cluster) { c.begins("a", 3, 3) }, "the id is below the count"},
		"a begun pod is withdrawn": {func(c *cluster) {
			c.begins("a", 3, 5)
			c.pod("a", says("a", "y", ""), append(gated, "idalloc.dev/id", "3")...)
		}, "a begun pod is never withdrawn"},
		"another id than the lock's": {func(c *cluster) {
			c.begins("a", 3, 5)
			c.pod("a", says("a", "b", `"id":3,"begun":true,`), append(gated, "idalloc.dev/id", "4", "idalloc.dev/start-count", "5")...)
		}, "its thing"},
		"a Lease is taken before it is over": {func(c *cluster) {
			c.lease("a", 3)
			c.now = c.now.Add(20 * time.Second)
			c.lease("b", 3)
		}, "it is free, its own, or expired"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(observe.Warning)
			fault.play(c)
			if rules := c.rules(); !slices.Contains(rules, fault.rule) {
				t.Fatalf("got %q, want %q", rules, fault.rule)
			}
			f := c.findings[0]
			if f.Object.Name == "" || f.Level != observe.Warning {
				t.Errorf("%+v names no object", f)
			}
		})
	}
}

func TestNothingIsFoundWhereAllIsWell(t *testing.T) {
	c := newCluster(observe.Warning)
	for id := range 3 {
		c.takes("a"+strconv.Itoa(id), id)
		c.begins("g"+strconv.Itoa(id), id+3, 6)
	}
	c.pod("a0", says("a0", "g", `"gaveUp":true,`))
	c.takes("b0", 0)
	c.Gone("g0-uid")
	c.begins("h0", 3, 6)
	c.pod("b1", "")
	c.pod("b1", says("b1", "l", `"id":1,`)) // the planner was wrong
	c.pod("b1", says("b1", "w", ``))
	c.lease("s", 5)
	c.now = c.now.Add(43 * time.Second)
	c.lease("r", 5)
	c.first = true // after an interruption of the watch
	c.lease("q", 5)
	c.pod("i", says("i", "l", `"id":6,`))
	c.first = false
	c.pod("i", says("i", "n", fmt.Sprintf(`"id":6,"token":%d,`, c.version))) // its T3 was not seen
	c.late = 30 * time.Second
	c.lease("t", 7)
	c.now, c.late = c.now.Add(15*time.Second), 0
	c.lease("u", 7)
	if len(c.findings) > 0 {
		t.Errorf("%+v", c.findings)
	}
}

// What an Observer keeps of 10,000 pods, each with a slot and a few partitions.
func TestMemory(t *testing.T) {
	const pods, most = 10_000, 50 << 20
	before := heap()
	c := newCluster(observe.Warning)
	for i := range pods {
		c.takes("worker-5d9c7b6f4-"+strconv.Itoa(i), i)
	}
	used := heap() - before
	t.Logf("%d bytes for each of %d pods", used/pods, pods)
	if used > most {
		t.Errorf("%d bytes for %d pods, at most %d", used, pods, most)
	}
	if found := c.Findings(); len(found) > 0 {
		t.Error(slices.Collect(maps.Keys(found)))
	}
}
