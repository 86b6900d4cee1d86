package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// statement is one of in-toto (https://in-toto.io/Statement/v1), with the fields that a release fills.
type statement struct {
	Type          string     `json:"_type"` //nolint:tagliatelle // in-toto's name
	Subject       []resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     predicate  `json:"predicate"`
}

// resource is a file or an image by its name, or what something is made of by its URI.
type resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest"`
}

// predicate is one of SLSA (https://slsa.dev/provenance/v1). It has no time and no machine, because any machine makes the same bytes.
type predicate struct {
	BuildDefinition struct {
		BuildType            string     `json:"buildType"`
		ExternalParameters   parameters `json:"externalParameters"`
		ResolvedDependencies []resource `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID      string            `json:"id"`
			Version map[string]string `json:"version"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// parameters are what a release is made with.
type parameters struct {
	Version string `json:"version"`
	// Only is the one platform of a trial. Dirty is a trial of what is not committed.
	Only  string `json:"only,omitempty"`
	Dirty bool   `json:"dirty,omitempty"`
}

// provenance writes which commit and which Go version the files are made of that are there, and the images.
func (r *release) provenance() error {
	files, err := below(r.out)
	if err != nil {
		return err
	}
	s := statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, f := range files {
		s.Subject = append(s.Subject, resource{Name: f.name, Digest: map[string]string{"sha256": fmt.Sprintf("%x", sha256.Sum256(f.content))}})
	}
	for _, image := range slices.Sorted(maps.Keys(r.digests)) {
		digest := r.digests[image]
		s.Subject = append(s.Subject, resource{Name: image, Digest: map[string]string{digest.Algorithm: digest.Hex}})
	}
	definition, builder := &s.Predicate.BuildDefinition, &s.Predicate.RunDetails.Builder
	definition.BuildType = "https://" + project + "/blob/" + r.commit + "/hack/release/doc.go"
	definition.ExternalParameters = r.parameters
	definition.ExternalParameters.Version = r.version
	definition.ResolvedDependencies = []resource{{URI: "git+https://" + project, Digest: map[string]string{"gitCommit": r.commit}}}
	builder.ID, builder.Version = "https://"+project+"/hack/release", map[string]string{"go": r.toolchain}
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return r.write("idalloc_"+r.version+".intoto.json", append(text, '\n'))
}
