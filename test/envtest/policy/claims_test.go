package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/idalloc/idalloc/pkg/allocator/assignment"
	"github.com/idalloc/idalloc/pkg/allocator/receipt"
)

// claimant is a field manager whose first apply is still to come.
const claimant = "argocd-controller"

// maxUpdaters is how many entries of updates the API server keeps (k8s.io/apimachinery, pkg/util/managedfields).
const maxUpdaters = 10

// entry is one of managedFields.
func entry(manager string, operation metav1.ManagedFieldsOperationType, apiVersion, fields string) metav1.ManagedFieldsEntry {
	now := metav1.Now()
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: apiVersion, Time: &now, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
	}
}

// fieldsOf changes the fields of the entry of this manager.
func fieldsOf(entries []metav1.ManagedFieldsEntry, manager, fields string) []metav1.ManagedFieldsEntry {
	for i := range entries {
		if entries[i].Manager == manager {
			entries[i].FieldsV1 = metav1.NewFieldsV1(fields)
		}
	}
	return entries
}

// without removes the entries of this manager.
func without(entries []metav1.ManagedFieldsEntry, manager string) []metav1.ManagedFieldsEntry {
	return slices.DeleteFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == manager })
}

// forges sends an object with other managedFields, beside a change that is idalloc's.
func forges(resource schema.GroupVersionResource, name string, by func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry) request {
	return func(ctx context.Context, a actor) error {
		return a.replace(ctx, resource, name, func(o *unstructured.Unstructured) {
			key, value := assignment.Key, `{"0":"pod"}`
			if resource == pods {
				key, value = assignment.DeletionCostKey, "7"
			}
			Expect(unstructured.SetNestedField(o.Object, value, "metadata", "annotations", key)).To(Succeed())
			o.SetManagedFields(by(o.GetManagedFields()))
		})
	}
}

var _ = Describe("a marked account, about what others manage,", Ordered, ContinueOnFailure, func() {
	const spec = `{"f:spec":{"f:replicas":{}}}`
	var s *scene
	BeforeAll(func(ctx SpecContext) { s = newScene(ctx) })

	for says, forge := range map[string]struct {
		by    func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry
		names string
	}{
		"take a claim from a program that updates": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return without(e, "another") }, "another (Update)"},
		"take a claim from a program that applies": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return without(e, "gitops") }, "gitops (Apply)"},
		"take a claim from a controller": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return without(e, "kube-controller-manager")
		}, "kube-controller-manager (Update)"},
		"take a part of a claim": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return fieldsOf(e, "another", `{"f:metadata":{"f:labels":{"f:example.com/keep":{}}}}`)
		}, "another (Update)"},
		"extend a claim": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return fieldsOf(e, "gitops", `{"f:metadata":{"f:labels":{"f:example.com/applied":{},"f:example.com/keep":{}}}}`)
		}, "gitops (Apply)"},
		"let a program claim a spec": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return fieldsOf(e, "gitops", spec) }, "gitops (Apply)"},
		// A map with content claims what is in it, and not the key.
		"let a claim on a label be one on something below it": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return fieldsOf(e, "gitops", `{"f:metadata":{"f:labels":{"f:example.com/applied":{"f:x":{}}}}}`)
		}, "gitops (Apply)"},
		"let a claim have more below it": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			return fieldsOf(e, "gitops", `{"f:metadata":{"f:labels":{"f:example.com/applied":{".":{},"f:x":{}}}}}`)
		}, "gitops (Apply)"},
		"change when a program wrote": {func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
			for i := range e {
				e[i].Time = &metav1.Time{}
			}
			return e
		}, "another (Update)"},
	} {
		It("may not "+says, func(ctx SpecContext) {
			s.refused(ctx, s.marked, forges(deployments, theDeployment, forge.by), "managedFields of deployments "+theDeployment, forge.names)
			s.refused(ctx, s.marked, forges(pods, s.own.Name, forge.by), "managedFields of pods "+s.own.Name, forge.names)
		})
	}

	DescribeTable("may not add an entry", func(ctx SpecContext, manager string, operation metav1.ManagedFieldsOperationType, fields, subresource string) {
		for resource, version := range map[schema.GroupVersionResource]string{deployments: "apps/v1", pods: "v1"} {
			name := theDeployment
			if resource == pods {
				name = s.own.Name
			}
			s.refused(ctx, s.marked, forges(resource, name, func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
				added := entry(manager, operation, version, fields)
				added.Subresource = subresource
				return append(e, added)
			}), fmt.Sprintf("%s (%s)", manager, operation))
		}
	},
		Entry("of an applier", claimant, metav1.ManagedFieldsOperationApply, spec, "", SpecTimeout(patience)),
		Entry("of an applier, for idalloc's own key", claimant, metav1.ManagedFieldsOperationApply, `{"f:metadata":{"f:annotations":{"f:idalloc.dev/handover":{}}}}`, "", SpecTimeout(patience)),
		Entry("of an applier that has idalloc's name", assignment.FieldManager, metav1.ManagedFieldsOperationApply, spec, "", SpecTimeout(patience)),
		Entry("of a program that updates", claimant, metav1.ManagedFieldsOperationUpdate, spec, "", SpecTimeout(patience)),
		Entry("with idalloc's name and a spec", assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, spec, "", SpecTimeout(patience)),
		Entry("with idalloc's name and another key", assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:example.com/keep":{}}}}`, "", SpecTimeout(patience)),
		Entry("with idalloc's name and content below idalloc's key", assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:idalloc.dev/handover":{"f:x":{}}}}}`, "", SpecTimeout(patience)),
		Entry("with idalloc's name and content below a key of the autoscaler", "idalloc-autoscaler", metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:idalloc.dev/receipt":{"f:x":{}}}}}`, "", SpecTimeout(patience)),
		Entry("with idalloc's name and a status", assignment.FieldManager, metav1.ManagedFieldsOperationUpdate, `{"f:metadata":{"f:annotations":{"f:idalloc.dev/handover":{}}}}`, "status", SpecTimeout(patience)),
		Entry("with the name of merged ones", "ancient-changes", metav1.ManagedFieldsOperationUpdate, spec, "", SpecTimeout(patience)),
	)

	It("may not write under another name, or by server-side apply", func(ctx SpecContext) {
		patch := `{"metadata":{"annotations":{"idalloc.dev/assignment":"9"}}}`
		s.refused(ctx, s.marked, func(ctx context.Context, a actor) error {
			_, err := a.dynamic.Resource(deployments).Namespace(a.namespace).Patch(ctx, theDeployment, types.MergePatchType, []byte(patch),
				metav1.PatchOptions{FieldManager: claimant, DryRun: dryRun})
			return err
		}, claimant+" (Update)")
		s.refused(ctx, s.marked, func(ctx context.Context, a actor) error {
			return a.apply(ctx, pods, s.own.Name, map[string]any{
				"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": s.own.Name, "labels": map[string]any{receipt.IDLabel: "1"}},
			})
		}, "idalloc (Apply)")
	})

	It("may be the eleventh who updates, and use that for nothing", func(ctx SpecContext) {
		admin := newActor(s.ns.Name, env.ControlPlane.Config()).dynamic.Resource(deployments).Namespace(s.ns.Name)
		updaters := func() []metav1.ManagedFieldsEntry {
			o, err := admin.Get(ctx, theDeployment, metav1.GetOptions{})
			Expect(err).NotTo(HaveOccurred())
			return slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Operation != metav1.ManagedFieldsOperationUpdate })
		}
		for i := 0; len(updaters()) < maxUpdaters; i++ {
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/label-%d":"x"}}}`, i) // of which no controller hears
			_, err := admin.Patch(ctx, theDeployment, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fmt.Sprintf("person-%d", i)})
			Expect(err).NotTo(HaveOccurred())
		}
		// The API server merges the oldest entries. Entries of this second count as older than the one of the write if their names come first.
		Eventually(func(g Gomega) {
			o, err := admin.Get(ctx, theDeployment, metav1.GetOptions{})
			g.Expect(err).NotTo(HaveOccurred())
			entries := o.GetManagedFields()
			for i := range entries {
				entries[i].Time = &metav1.Time{Time: entries[i].Time.Add(-time.Hour)}
			}
			o.SetManagedFields(entries)
			// An update that changes nothing but times counts as none.
			g.Expect(unstructured.SetNestedField(o.Object, "y", "metadata", "labels", "example.com/label-0")).To(Succeed())
			_, err = admin.Update(ctx, o, metav1.UpdateOptions{FieldManager: "person-0"})
			g.Expect(err).NotTo(HaveOccurred())
		}).WithContext(ctx).Should(Succeed())
		Expect(s.marked.merge(ctx, deployments, theDeployment, `{"metadata":{"annotations":{"idalloc.dev/assignment":"9"}}}`)).To(Succeed())
		for name, forge := range map[string]func([]metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry{
			"without one of them": func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry { return without(e, "person-1") },
			"with one of them less, and nothing in return": func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
				return append(without(e, "person-1"), entry("ancient-changes", metav1.ManagedFieldsOperationUpdate, "apps/v1", `{"f:metadata":{"f:labels":{"f:example.com/keep":{}}}}`))
			},
			"with the names of two of them again and again": func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
				const open = `"f:metadata":{"f:labels":{"f:example.com/label-1":{"f:example.com/label-2":{`
				fields := "{" + strings.Repeat(open, 1000) + strings.Repeat("}}}}", 1000) + "}"
				return append(without(without(e, "person-1"), "person-2"), entry("ancient-changes", metav1.ManagedFieldsOperationUpdate, "apps/v1", fields))
			},
			"with a claim on a spec beside them": func(e []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
				return append(e, entry("ancient-changes", metav1.ManagedFieldsOperationUpdate, "apps/v1", `{"f:spec":{"f:paused":{}}}`)) // which none of the merged ones claims
			},
		} {
			By(name)
			s.refused(ctx, s.marked, forges(deployments, theDeployment, forge), "managedFields of deployments "+theDeployment)
		}
	})
})
