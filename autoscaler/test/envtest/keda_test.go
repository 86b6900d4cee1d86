package envtest

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

// The module in which KEDA publishes its schemas. Nothing of it is built, so it is no requirement of a go.mod.
const (
	keda    = "github.com/kedacore/keda/v2@v2.21.0"
	kedaSum = "h1:R6z2HZvstK4RLUMxroNACzBj74xGxt3kG59b5Xc+Xps="
)

// published returns the directory of KEDA's module.
func published(ctx context.Context) string {
	GinkgoHelper()
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", keda).Output()
	Expect(err).NotTo(HaveOccurred(), string(out))
	var module struct {
		Dir string `json:"Dir"` //nolint:tagliatelle // go's
		Sum string `json:"Sum"` //nolint:tagliatelle // as above
	}
	Expect(json.Unmarshal(out, &module)).To(Succeed())
	Expect(module.Sum).To(Equal(kedaSum))
	return module.Dir
}

// object reads a file of YAML or JSON.
func object(path ...string) *unstructured.Unstructured {
	GinkgoHelper()
	content, err := os.ReadFile(filepath.Join(path...)) //nolint:gosec // a file of this repository or of KEDA's module
	Expect(err).NotTo(HaveOccurred())
	o := &unstructured.Unstructured{}
	Expect(yaml.UnmarshalStrict(content, &o.Object)).To(Succeed())
	return o
}

var _ = Describe("The ScaledObject of the example", func() {
	It("is what KEDA's published schemas ask for", func(ctx SpecContext) {
		dir := published(ctx)
		client, err := dynamic.NewForConfig(env.ControlPlane.Config())
		Expect(err).NotTo(HaveOccurred())
		definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
		definition, err := definitions.Create(ctx, object(dir, "config", "crd", "bases", "keda.sh_scaledobjects.yaml"), metav1.CreateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) {
			Expect(definitions.Delete(ctx, definition.GetName(), metav1.DeleteOptions{})).To(Succeed())
		})
		root, err := controlplane.ModuleRoot()
		Expect(err).NotTo(HaveOccurred())
		example := object(root, "autoscaler", "config", "scaledobject.yaml")
		ns, err := env.NewNamespace(ctx)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(ns.Delete)
		objects := client.Resource(schema.GroupVersionResource{Group: "keda.sh", Version: "v1alpha1", Resource: "scaledobjects"}).Namespace(ns.Name)
		create := func(o *unstructured.Unstructured) error {
			_, err := objects.Create(ctx, o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}})
			return err
		}
		Eventually(func() error { return create(example) }).WithContext(ctx).Should(Succeed()) // once the new kind is served
		wrong := example.DeepCopy()
		Expect(unstructured.SetNestedField(wrong.Object, "2", "spec", "minReplicas")).To(Succeed())
		Expect(create(wrong)).To(MatchError(ContainSubstring(`unknown field "spec.minReplicas"`)))

		// The definition says nothing of what is inside a trigger. Another file does.
		var scalers struct {
			Scalers []struct {
				Type       string `json:"type"`
				Parameters []struct {
					Name     string `json:"name"`
					Optional bool   `json:"optional"`
				} `json:"parameters"`
			} `json:"scalers"`
		}
		content, err := os.ReadFile(filepath.Join(dir, "schema", "generated", "scalers-schema.json")) //nolint:gosec // a file of KEDA's module
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(content, &scalers)).To(Succeed())
		triggers, _, err := unstructured.NestedSlice(example.Object, "spec", "triggers")
		Expect(err).NotTo(HaveOccurred())
		Expect(triggers).To(HaveLen(1))
		trigger, ok := triggers[0].(map[string]any)
		Expect(ok).To(BeTrue())
		metadata, _, err := unstructured.NestedStringMap(trigger, "metadata")
		Expect(err).NotTo(HaveOccurred())
		known := false
		for _, s := range scalers.Scalers {
			if s.Type != trigger["type"] {
				continue
			}
			known = true
			for _, p := range s.Parameters {
				if _, there := metadata[p.Name]; !there {
					Expect(p.Optional).To(BeTrue(), "the trigger needs %s", p.Name)
				}
				delete(metadata, p.Name)
			}
		}
		Expect(known).To(BeTrue(), "KEDA has no trigger %v", trigger["type"])
		Expect(metadata).To(BeEmpty(), "KEDA does not know these")
	})
})
