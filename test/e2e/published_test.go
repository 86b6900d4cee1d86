//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/idalloc/idalloc/pkg/identity"
)

// expectPublished compares the files and the HTTP answers inside a pod with what they shall say.
func (w *workload) expectPublished(ctx context.Context, pod string, id, count int) {
	GinkgoHelper()
	By("asking " + pod)
	if w.manifest.container("idalloc") == nil {
		Expect(w.http(ctx, pod, "8080", "readyz")).Error().NotTo(HaveOccurred())
		return
	}
	body, err := w.http(ctx, pod, "8089", "v1/identity")
	Expect(err).NotTo(HaveOccurred())
	var got identity.Identity
	Expect(json.Unmarshal([]byte(body), &got)).To(Succeed())
	Expect(got).To(Equal(identity.Identity{
		State: identity.StateAssigned, ID: id, Count: count, Token: got.Token, Pod: pod, Namespace: w.namespace,
		Owner: identity.Owner{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
	}))
	Expect(w.http(ctx, pod, "8089", "readyz")).To(ContainSubstring("ok"))
	Expect(w.http(ctx, pod, "8089", "healthz")).To(ContainSubstring("ok"))

	// The images have no shell; the program prints its files itself.
	printed, err := w.kubectl(ctx, "exec", pod, "-c", name, "--", program, "print")
	Expect(err).NotTo(HaveOccurred())
	Expect(printed).To(Equal(fmt.Sprintf("==> id\n%d\n==> count\n%d\n==> token\n%d\n==> state\nassigned\n==> identity.json\n%s"+
		"==> env\nIDALLOC_ID='%d'\nIDALLOC_COUNT='%d'\nIDALLOC_TOKEN='%d'\nIDALLOC_STATE='assigned'\n", id, count, got.Token, body, id, count, got.Token)))
}

// http asks a port of a pod through the API server.
func (w *workload) http(ctx context.Context, pod, port, path string) (string, error) {
	return w.kubectl(ctx, "get", "--raw", fmt.Sprintf("/api/v1/namespaces/%s/pods/%s:%s/proxy/%s", w.namespace, pod, port, path))
}
