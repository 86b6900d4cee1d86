package controlplane

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Minor is a version of Kubernetes on which idalloc is tested, and what differs there by default.
type Minor struct {
	// Version is that of its programs, such as 1.36.3.
	Version string
	// MutatingPolicies: the API server has MutatingAdmissionPolicies.
	MutatingPolicies bool
	// EnvFiles: a variable can come from a file (fileKeyRef).
	EnvFiles bool
	// MaxUnavailable: a StatefulSet has maxUnavailable.
	MaxUnavailable bool
}

// Name returns the version without its patch, such as 1.36.
func (m Minor) Name() string { return m.Version[:strings.LastIndexByte(m.Version, '.')] }

// Minors reads hack/controlplane/minors, the oldest version first.
func Minors() (all []Minor, err error) {
	root, err := ModuleRoot()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(filepath.Join(root, "hack", "controlplane", "minors")) //nolint:gosec // the name is fixed
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		if len(fields) != 5 {
			return nil, fmt.Errorf("%s: want five columns: %s", file.Name(), lines.Text())
		}
		all = append(all, Minor{Version: fields[0], MutatingPolicies: fields[1] == "yes", EnvFiles: fields[2] == "yes", MaxUnavailable: fields[3] == "yes"})
	}
	return all, lines.Err()
}
