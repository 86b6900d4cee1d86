package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// chart writes the archive of the Helm chart.
func (r *release) chart() error {
	const folder = "charts/idalloc"
	var entries []entry
	err := fs.WalkDir(os.DirFS(r.root), folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(r.root, name)) //nolint:gosec // a file of the project
		if err == nil && path.Base(name) == "Chart.yaml" {
			content, err = r.stamped(content)
		}
		entries = append(entries, entry{path.Join("idalloc", strings.TrimPrefix(name, folder)), plain, content})
		return err
	})
	if err != nil {
		return err
	}
	content, err := tarGz(entries, r.time)
	if err != nil {
		return err
	}
	return r.write("idalloc_"+r.version+"_chart.tgz", content)
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
