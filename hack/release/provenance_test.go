package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func checkProvenance(t *testing.T, release map[string][]byte) {
	t.Helper()
	const own = "idalloc_v1.2.3.intoto.json"
	var s statement
	if err := json.Unmarshal(release[own], &s); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, subject := range s.Subject {
		got[subject.Name] = subject.Digest["sha256"]
	}
	want := map[string]string{}
	for name, content := range release {
		want[name] = fmt.Sprintf("%x", sha256.Sum256(content))
		if image, is := strings.CutSuffix(name, "_v1.2.3_image.tar"); is {
			want["ghcr.io/idalloc/"+image] = strings.TrimPrefix(digest(t, content), "sha256:")
		}
	}
	for _, later := range []string{own, "SHA256SUMS", "SHA256SUMS.sig"} {
		delete(want, later)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("it is about %q, not %q", got, want)
	}
	definition := s.Predicate.BuildDefinition
	if definition.ExternalParameters != (parameters{Version: version}) || definition.ResolvedDependencies[0].Digest["gitCommit"] != commit ||
		!strings.HasPrefix(s.Predicate.RunDetails.Builder.Version["go"], "go1.") {
		t.Errorf("%s", release[own])
	}
}
