package envtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/idalloc/idalloc/autoscaler/internal/workload"
	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/store"
	"github.com/idalloc/idalloc/pkg/allocator/store/wire"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/envtest/example"
	"github.com/idalloc/idalloc/test/envtest/suite"
)

const (
	name       = "worker"
	partitions = 12
	// lease is the name of the Lease that the autoscaler's Role names.
	lease = "idalloc-autoscaler-deployment.worker"
)

// scaled is a Deployment whose pods work on partitions, with the loads that the spec says.
type scaled struct {
	*suite.Namespace

	ref    kinds.Ref
	store  *store.Store // the admin's
	config *rest.Config // the autoscaler's

	// load is what all partitions together grow by in a second.
	load atomic.Int64
	// broken are the rules that a moment of the owner broke.
	broken []error
}

// prepare makes a namespace with the autoscaler's account, and no workload yet.
func prepare(ctx SpecContext) *scaled {
	GinkgoHelper()
	ns, err := env.NewNamespace(ctx)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(ns.Delete)
	ref, err := kinds.ParseRef("deployment/"+name, ns.Name)
	Expect(err).NotTo(HaveOccurred())
	w := &scaled{Namespace: ns, ref: ref}
	w.store, err = store.New(env.ControlPlane.Config(), clock.RealClock{})
	Expect(err).NotTo(HaveOccurred())
	w.config, err = example.AutoscalerConfig(ctx, env, ns)
	Expect(err).NotTo(HaveOccurred())
	return w
}

// deploy makes a workload of one pod that works on partitions, and waits until each partition is owned.
func deploy(ctx SpecContext) *scaled {
	GinkgoHelper()
	w := prepare(ctx)
	c := suite.Container("main")
	c.Image = image
	c.Env = append(c.Env, corev1.EnvVar{Name: "HTTP_ADDRESS", Value: "127.0.0.1:0"})
	d := suite.Deployment(name, 1, suite.PodSpec(c))
	d.Annotations = map[string]string{
		assignment.PartitionCountKey: strconv.Itoa(partitions), assignment.PartitionStrategyKey: placement.NameExternal,
		assignment.PartitionFailoverAfterKey: "2s",
	}
	Expect(w.Create(ctx, d)).To(Succeed())
	w.load.Store(50)
	w.follow(ctx)
	w.settles(ctx, 1)
	return w
}

// prometheus answers a query with the loads of the partitions, which are all alike.
func (w *scaled) prometheus() string {
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
		series := make([]string, partitions)
		for p := range series {
			series[p] = fmt.Sprintf(`{"metric":{"partition":"%d"},"value":[0,"%g"]}`, p, float64(w.load.Load())/partitions)
		}
		_, _ = io.WriteString(out, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Join(series, ",")+"]}}")
	}))
	DeferCleanup(server.Close)
	return server.URL
}

// settles waits until so many pods are asked for, and their ids own all partitions.
func (w *scaled) settles(ctx context.Context, pods int) {
	GinkgoHelper()
	Eventually(func() error {
		m, err := workload.Workload{Store: w.store, Ref: w.ref}.Read(ctx)
		if err != nil {
			return err
		}
		owned := 0
		for _, set := range m.Row {
			owned += set.Len()
		}
		if m.Count != pods || len(m.Row) != pods || owned != partitions {
			return fmt.Errorf("%d pods, owners %s; %s", m.Count, m.Row, m.Trouble)
		}
		return nil
	}).WithContext(ctx).Should(Succeed())
}

// follow checks each moment of the owner against the rules of its writes, until the spec ends.
func (w *scaled) follow(ctx SpecContext) {
	GinkgoHelper()
	ctx2, cancel := context.WithCancel(context.WithoutCancel(ctx))
	watch, err := w.store.WatchObjects(ctx2, w.ref, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	Expect(err).NotTo(HaveOccurred())
	done := make(chan struct{})
	go func() {
		defer close(done)
		var last *store.Owner
		for e := range watch.ResultChan() {
			object, ok := e.Object.(*wire.Object)
			if !ok {
				continue
			}
			now, err := store.DecodeOwner(w.ref, object, nil)
			if err == nil && last != nil {
				err = lawful(*last, now)
			}
			w.broken = append(w.broken, err)
			last = &now
		}
	}()
	DeferCleanup(func() {
		cancel()
		watch.Stop()
		<-done
		Expect(errors.Join(w.broken...)).NotTo(HaveOccurred())
	})
}

// lawful checks that a target names members only, and that only ids go that own nothing.
func lawful(before, after store.Owner) error {
	row := assignment.Row{}
	if p := before.Record.State.Row; p != nil {
		row = *p
	}
	if !after.Wish.Target.Equal(before.Wish.Target) {
		for id := range after.Wish.Target {
			if _, member := row.Owners[id]; !member {
				return fmt.Errorf("the target %s names id %d, and the members are %v", after.Wish.Target, id, row.Owners.IDs())
			}
		}
	}
	if after.Count < before.Count {
		for id, set := range row.Owners {
			if id >= after.Count && !set.Empty() {
				return fmt.Errorf("scaled to %d, and id %d owns %s", after.Count, id, set)
			}
		}
	}
	return nil
}
