package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
)

// krewHead begins the manifest of the kubectl plugin for krew. Its verb is the version.
const krewHead = `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: idalloc
spec:
  version: %s
  homepage: https://github.com/idalloc/idalloc
  shortDescription: Show which pod of a workload has which id
  description: |
    idalloc gives every replica of a Deployment, StatefulSet, ReplicaSet or Job
    a small integer id of its own. This plugin shows which pod has which id,
    checks that and says why a pod has none, frees the slots of dead pods, and
    prepares workloads for idalloc.
  platforms:
`

// krewPlatform is the part of a platform. The verbs are system, architecture, URI, checksum and the program's file.
const krewPlatform = `    - selector:
        matchLabels: {os: %s, arch: %s}
      uri: %s
      sha256: %x
      bin: %s
`

// krew writes the manifest with which krew installs the plugin from the release's archives.
func (r *release) krew() error {
	var b strings.Builder
	fmt.Fprintf(&b, krewHead, r.version)
	for _, p := range r.products {
		if p.name != plugin {
			continue
		}
		for _, on := range p.platforms {
			of := binary{product: p, on: on}
			archive := r.stem(of) + ".tar.gz"
			if on.os == windows {
				archive = r.stem(of) + ".zip"
			}
			content, err := os.ReadFile(r.path(archive))
			if err != nil {
				return err
			}
			uri := "https://" + project + "/releases/download/" + r.version + "/" + archive
			fmt.Fprintf(&b, krewPlatform, on.os, on.arch, uri, sha256.Sum256(content), of.file())
		}
	}
	return r.write("idalloc.yaml", []byte(b.String()))
}
