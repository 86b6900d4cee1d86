package main

import (
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/testr"

	"github.com/idalloc/idalloc/test/envtest/controlplane"
)

func TestWithAuthenticationThePortAsksForAToken(t *testing.T) {
	cp, err := controlplane.Start(t.Context(), controlplane.Options{Log: testr.New(t)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cp.Stop() })
	kubeconfig, err := cp.Kubeconfig(controlplane.Admin)
	if err != nil {
		t.Fatal(err)
	}
	address, err := controlplane.FreeAddress(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	root := newRoot()
	root.SetArgs([]string{"--kubeconfig", kubeconfig, "--leader-election=false", "--health-address=0", "--metrics-address", address, "--metrics-authentication"})
	go func() { ended <- root.ExecuteContext(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // nobody signs the certificate
	answer := func(url string) (status int, text string) {
		deadline := time.After(time.Minute)
		for {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if err == nil {
				body, _ := io.ReadAll(response.Body)
				_ = response.Body.Close()
				return response.StatusCode, string(body)
			}
			select {
			case err := <-ended:
				ended <- err
				t.Fatalf("the controller ended: %v", err)
			case <-deadline:
				t.Fatal(err)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if status, text := answer("https://" + address + "/metrics"); status != http.StatusUnauthorized || strings.Contains(text, "idalloc_") {
		t.Errorf("without a token: %d\n%s", status, text)
	}
	if status, _ := answer("http://" + address + "/metrics"); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d", status)
	}
}
