package reconciler

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/kinds"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
	"github.com/idalloc/idalloc/pkg/placement"
	"github.com/idalloc/idalloc/test/simulation/object"
	"github.com/idalloc/idalloc/test/simulation/server"
)

// lagging is a cache whose watch of pods is behind.
type lagging struct {
	*cluster

	pods []corev1.Pod
}

func (l lagging) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if out, ofPods := list.(*corev1.PodList); ofPods {
		out.Items = l.pods
		return nil
	}
	return l.cluster.List(ctx, list, options...)
}

// locks makes a pod with a receipt, by=agent for one with that label.
func (c *cluster) locks(name, by string, r receipt.Receipt) {
	c.t.Helper()
	labels := map[string]string{"app": worker, receipt.IDLabel: strconv.Itoa(r.Share.ID), receipt.OwnerLabel: assignment.OwnerLabelValue(r.Owner)}
	if by != "" {
		labels[receipt.AssignLabel] = by
	}
	c.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels, OwnerReferences: controlledBy(types.UID(c.uid("replicasets", "new")), kinds.ReplicaSet)},
		Spec:       corev1.PodSpec{NodeName: "node"},
	})
	c.relock(name, r)
}

func (c *cluster) relock(name string, r receipt.Receipt) {
	r.UID, r.State = c.uid(object.Pods, name), receipt.Locks
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, name, server.Writer{}, func(o object.Object) { object.SetText(o, "annotations", receipt.Key, r.Encode()) })
	})
}

// The watch of pods is seconds behind. Agent a has locked partitions meanwhile, which agent c has, and T3 was to show what locks its slot. It also shows a pod that the
// cache lacks, so the pass reads all pods once more, and a among them. What no list was asked for is not confirmed.
func TestAListConfirmsOnlyWhatItWasAskedFor(t *testing.T) {
	for what, stranger := range map[string]func(c *cluster){
		"another pod locks a slot that was asked for": func(c *cluster) {
			c.locks("s", "", receipt.Receipt{Owner: own, Share: receipt.Share{ID: 2}, Write: "ws"})
		},
		"another pod runs under an id and locks for another owner": func(c *cluster) {
			c.runs("s", 2, 3)
			r := receipt.Receipt{UID: c.uid(object.Pods, "s"), Owner: "ReplicaSet/old", State: receipt.Locks, Share: receipt.Share{ID: 2}, Begun: true, Write: "ws"}
			c.api.Alone(func(s *server.Server) {
				s.Change(object.Pods, "s", server.Writer{}, func(o object.Object) {
					object.SetText(o, "annotations", receipt.Key, r.Encode())
					object.SetText(o, "labels", receipt.OwnerLabel, assignment.OwnerLabelValue(r.Owner))
				})
			})
		},
	} {
		c := newCluster(t)
		c.deployment(3, assignment.Slots{0: "a", 1: "c", 2: "b"})
		shared := receipt.Share{ID: 1, Of: 8, Partitions: placement.Between(0, 3)}
		c.locks("a", receipt.ByAgent, receipt.Receipt{Owner: own, Share: receipt.Share{ID: 0}, Write: "old"})
		c.locks("b", receipt.ByAgent, receipt.Receipt{Owner: own, Share: receipt.Share{ID: 2}, Write: "wb"})
		c.locks("c", receipt.ByAgent, receipt.Receipt{Owner: own, Share: shared, Write: "wc"})
		owner, err := c.x.store.GetOwner(t.Context(), c.ref)
		if err != nil {
			t.Fatal(err)
		}
		told := receipt.Proposal{
			UID: c.uid(object.Pods, "c"), Owner: owner.Owner(), Count: 3, Share: shared, Confirmed: &receipt.Confirmed{Write: "wc", Share: shared},
		}
		c.api.Alone(func(s *server.Server) {
			s.Change(object.Pods, "c", server.Writer{}, func(o object.Object) { object.SetText(o, "annotations", receipt.ProposalKey, told.Encode()) })
		})
		var before corev1.PodList
		if err := c.Client.List(t.Context(), &before, client.InNamespace(server.Namespace)); err != nil {
			t.Fatal(err)
		}
		shared.ID = 0
		c.relock("a", receipt.Receipt{Owner: own, Share: shared, Write: "new"})
		stranger(c)
		c.x.cache = lagging{c, before.Items}
		c.x.memory(c.ref).outside.listed = true
		for pass := range 3 {
			if _, err := c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref)); err != nil {
				t.Fatal(err)
			}
			is, _ := receipt.ProposalOf(&podMeta{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.uid(object.Pods, "a")), Annotations: map[string]string{receipt.ProposalKey: c.on("a", receipt.ProposalKey)}}})
			if got := is.Confirmed; got != nil && got.Write == "new" && !got.Partitions.Equal(shared.Partitions) {
				t.Errorf("%s, pass %d: agent a may work on %s, which agent c works on", what, pass+1, shared.Partitions.Minus(got.Partitions))
			} else if pass == 2 && (got == nil || got.Write != "new") {
				t.Errorf("%s: agent a never hears what others lock: %+v", what, got)
			}
		}
	}
}

// Another Deployment adopts the ReplicaSet of a gated pod after the pass has read who owns it. A leader that knows of that gives the pod an id of the adopter.
func TestNoPodBeginsThatAnotherOwnerHasAdoptedMeanwhile(t *testing.T) {
	c := newCluster(t)
	c.deployment(1, assignment.Slots{0: "a"})
	c.gated("a")
	adopted := false
	c.meanwhile = func(name string) {
		if name != "a" || adopted {
			return
		}
		adopted = true
		c.api.Alone(func(s *server.Server) {
			s.Change("replicasets", "new", server.Writer{}, func(o object.Object) {
				object.At(o, object.Metadata)["ownerReferences"] = []any{
					object.Object{"apiVersion": appsV1, "kind": kinds.Deployment, "name": "adopter", "uid": "adopter", "controller": true},
				}
			})
		})
	}
	c.passes(1)
	if id := c.on("a", receipt.IDKey); !adopted || c.on("a", receipt.Key) == "" || id != "" {
		t.Errorf("the pod locks %q, and has id %q", c.on("a", receipt.Key), id)
	}
}

// formerOwner is an owner whose pods the Deployment of the tests has adopted in part.
const formerOwner = "Deployment/former"

// adopted makes pods of formerOwner: a with id 1, which the Deployment has adopted, and x with id 0.
func (c *cluster) adopted() {
	c.t.Helper()
	var err error
	if c.x.kinds, _, err = kinds.BuiltIn().Find(builtIn()); err != nil {
		c.t.Fatal(err)
	}
	for id, name := range []string{"x", "a"} {
		c.runs(name, id, 3)
		r := receipt.Receipt{UID: c.uid(object.Pods, name), Owner: formerOwner, State: receipt.Locks, Share: receipt.Share{ID: id}, Begun: true, Token: 5, Write: "w"}
		c.api.Alone(func(s *server.Server) {
			s.Change(object.Pods, name, server.Writer{}, func(o object.Object) {
				object.SetText(o, "annotations", receipt.Key, r.Encode())
				object.SetText(o, "labels", receipt.OwnerLabel, assignment.OwnerLabelValue(formerOwner))
				object.SetText(o, "annotations", receipt.IdentityKey, strings.Replace(object.Annotation(o, receipt.IdentityKey), `"name":"worker"`, `"name":"former"`, 1))
				if name == "x" {
					object.SetText(o, "labels", "app", "former")
					object.At(o, object.Metadata)["ownerReferences"] = []any{object.Object{"apiVersion": appsV1, "kind": kinds.ReplicaSet, "name": "formers", "uid": "formers", "controller": true}}
				}
			})
		})
	}
}

// The receipt of a pod that a former owner still has was damaged. Its labels are whole.
func TestAnUnreadableReceiptOfAFormerOwnerLocksTheSlotOfItsLabel(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{1: "a", 0: "d"})
	c.adopted()
	c.api.Alone(func(s *server.Server) {
		s.Change(object.Pods, "x", server.Writer{}, func(o object.Object) {
			object.SetText(o, "annotations", receipt.Key, strings.Replace(object.Annotation(o, receipt.Key), `"id":0`, `"id":-5`, 1))
		})
	})
	c.gated("d")
	c.passes(5)
	if id := c.on("d", receipt.IDKey); id != "" {
		t.Errorf("pod x runs under id 0 of %s, and pod d got id %s", formerOwner, c.on("d", receipt.IdentityKey))
	}
}

// Pod d is proposed the slot of pod x first, of which only T3 shows that it is locked.
func TestANewPodFindsAFreeIDBesideThoseOfAFormerOwner(t *testing.T) {
	c := newCluster(t)
	c.deployment(3, assignment.Slots{1: "a"})
	c.adopted()
	c.gated("d")
	if c.passes(5); c.on("d", receipt.IDKey) != "2" {
		t.Errorf("id 2 is free; after %d writes pod d has id %q, receipt %s", c.writes["d"], c.on("d", receipt.IDKey), c.on("d", receipt.Key))
	}
}

// The cache lacks pod a, so the pass hears only from T3 of the owner that a comes from. What other pods lock of that owner is no part of what T3 listed.
func TestNothingIsConfirmedBeforeThePodsOfAFormerOwnerAreListed(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{0: "n"})
	c.adopted()
	c.locks("n", receipt.ByAgent, receipt.Receipt{Owner: own, Share: receipt.Share{ID: 0}, Write: "wn"})
	var before corev1.PodList
	if err := c.Client.List(t.Context(), &before, client.InNamespace(server.Namespace), client.MatchingLabels{receipt.AssignLabel: receipt.ByAgent}); err != nil {
		t.Fatal(err)
	}
	c.x.cache = lagging{c, before.Items}
	c.x.memory(c.ref).outside.listed = true
	c.passes(1)
	is, _ := receipt.ProposalOf(&podMeta{ObjectMeta: metav1.ObjectMeta{UID: types.UID(c.uid(object.Pods, "n")), Annotations: map[string]string{receipt.ProposalKey: c.on("n", receipt.ProposalKey)}}})
	if is.Confirmed == nil || !is.Confirmed.Slot || is.Confirmed.By != "x" {
		t.Errorf("pod x locks the slot of pod n, which hears %s", c.on("n", receipt.ProposalKey))
	}
}

// unlistable is an API server that lists no whole pods, such as for a moment without the right to do so.
type unlistable struct{ client.Reader }

func (u unlistable) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ofPods := list.(*corev1.PodList); ofPods {
		return errors.New("not now")
	}
	return u.Reader.List(ctx, list, options...)
}

// T3 shows a pod that the pass does not know, and that cannot be read. It may come from an owner that T3 was not about.
func TestNothingIsConfirmedBesideAPodThatCannotBeRead(t *testing.T) {
	c := newCluster(t)
	c.deployment(2, assignment.Slots{0: "n"})
	c.adopted()
	c.locks("n", receipt.ByAgent, receipt.Receipt{Owner: own, Share: receipt.Share{ID: 0}, Write: "wn"})
	var before corev1.PodList
	if err := c.Client.List(t.Context(), &before, client.InNamespace(server.Namespace), client.MatchingLabels{receipt.AssignLabel: receipt.ByAgent}); err != nil {
		t.Fatal(err)
	}
	c.x.cache, c.x.server = lagging{c, before.Items}, unlistable{c.x.server}
	c.x.memory(c.ref).outside.listed = true
	if _, err := c.x.reconcile(t.Context(), c.ref, c.x.memory(c.ref)); err == nil {
		t.Error("the pass has no error")
	}
	if told := c.on("n", receipt.ProposalKey); strings.Contains(told, `"confirmed"`) {
		t.Errorf("pod n hears %s", told)
	}
}
