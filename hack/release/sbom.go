package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"runtime/debug"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// project is the path of the module.
const project = "github.com/idalloc/idalloc"

// bill writes what a program was built of: the modules that are linked into it, as its build information lists them, and Go.
func (r *release) bill(b binary) error {
	info, err := buildinfo.Read(bytes.NewReader(b.content))
	if err != nil {
		return fmt.Errorf("%s: %w", r.stem(b), err)
	}
	r.toolchain = info.GoVersion
	program := cyclonedx.Component{
		BOMRef: purl(project, r.version), Type: cyclonedx.ComponentTypeApplication, Name: b.name, Version: r.version, PackageURL: purl(project, r.version),
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
		Hashes:   &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", sha256.Sum256(b.content))}},
		Properties: &[]cyclonedx.Property{
			{Name: project + ":commit", Value: r.commit}, {Name: project + ":platform", Value: b.on.os + "/" + b.on.arch},
		},
	}
	components := []cyclonedx.Component{module("std", info.GoVersion)}
	for _, m := range info.Deps {
		components = append(components, r.linked(m))
	}
	uses := make([]string, 0, len(components))
	for _, c := range components {
		uses = append(uses, c.BOMRef)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &program}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: program.BOMRef, Dependencies: &uses}}
	var text bytes.Buffer
	if err := cyclonedx.NewBOMEncoder(&text, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return r.write(r.stem(b)+".cdx.json", text.Bytes())
}

// linked returns the component of a module, or of what replaces it. A module that a folder replaces is of this repository, and of this version.
func (r *release) linked(m *debug.Module) cyclonedx.Component {
	switch {
	case m.Replace == nil:
	case m.Replace.Version == "":
		return module(m.Path, r.version)
	default:
		m = m.Replace
	}
	c := module(m.Path, m.Version)
	if m.Sum != "" {
		c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: m.Sum}}
	}
	return c
}

func module(path, version string) cyclonedx.Component {
	return cyclonedx.Component{BOMRef: purl(path, version), Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl(path, version)}
}

func purl(path, version string) string { return "pkg:golang/" + path + "@" + version }
