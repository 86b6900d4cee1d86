package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
)

// manifests writes the archives of the Helm chart and of the folders that kustomize reads.
func (r *release) manifests() error {
	chart, err := r.folder("charts/idalloc", "idalloc")
	if err != nil {
		return err
	}
	for i, e := range chart {
		if e.name != "idalloc/Chart.yaml" {
			continue
		}
		if chart[i].content, err = r.stamped(e.content); err != nil {
			return err
		}
	}
	config, err := r.folder("config", "config")
	if err != nil {
		return err
	}
	// Its kustomization names ../../config.
	autoscaler, err := r.folder("autoscaler/config", "autoscaler/config")
	if err != nil {
		return err
	}
	return errors.Join(r.packed("chart", chart), r.packed("config", append(config, autoscaler...)))
}

func (r *release) packed(what string, entries []entry) error {
	content, err := tarGz(entries, r.time)
	if err != nil {
		return err
	}
	return r.write("idalloc_"+r.version+"_"+what+".tgz", content)
}

// folder returns the files of a folder of the project, which are called as below another folder in the archive.
func (r *release) folder(from, to string) ([]entry, error) {
	entries, err := below(filepath.Join(r.root, from))
	for i, e := range entries {
		entries[i].name, entries[i].content = path.Join(to, e.name), r.pinned(e.content)
	}
	return entries, err
}

// tagged returns an error if a version is to be released whose commit has manifests of another one: people install them from its tag.
func (r *release) tagged() error {
	if !regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+$`).MatchString(r.version) {
		return nil
	}
	const file = "charts/idalloc/Chart.yaml"
	chart, err := os.ReadFile(filepath.Join(r.root, file))
	if err == nil && !bytes.Contains(chart, []byte("\nappVersion: "+r.version+"\n")) {
		err = fmt.Errorf("%s has another version than %s: write it into all manifests and pages (a test finds them), and tag that commit", file, r.version)
	}
	return err
}

// stamped returns a Chart.yaml with the version of the release: the one in the project is that of no release.
func (r *release) stamped(chart []byte) ([]byte, error) {
	for key, value := range map[string]string{"version": semantic(r.version), "appVersion": r.version} {
		line := regexp.MustCompile("(?m)^" + key + ": .*$")
		if n := len(line.FindAll(chart, -1)); n != 1 {
			return nil, fmt.Errorf("the chart has %d lines %s in Chart.yaml, not one", n, key)
		}
		chart = line.ReplaceAllLiteral(chart, fmt.Appendf(nil, "%s: %q", key, value))
	}
	return chart, nil
}

// semantic returns the version that Helm accepts for a chart. What is released without a tag is older than all that has one.
func semantic(version string) string {
	if tag := regexp.MustCompile(`^v([0-9]+\.[0-9]+\.[0-9]+([-+].*)?)$`).FindStringSubmatch(version); tag != nil {
		return tag[1]
	}
	// Behind a letter, a number may begin with 0.
	return "0.0.0-g" + regexp.MustCompile(`[^0-9A-Za-z-]+`).ReplaceAllString(version, "-")
}
