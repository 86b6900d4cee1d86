package main

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// user is the number of nobody in particular; runAsNonRoot cannot check a name.
const user = "65532"

// image writes the image of a product for all its platforms as an OCI archive, which containerd, podman, skopeo and crane read.
func (r *release) image(p product, programs []binary) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, b := range programs {
		image, err := r.forPlatform(b)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: b.on.os, Architecture: b.on.arch}},
		})
	}
	dir, err := os.MkdirTemp("", "idalloc-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the archive has it by then
	files, err := layout.Write(dir, mutate.IndexMediaType(empty.Index, types.OCIImageIndex))
	if err != nil {
		return err
	}
	// The first is what containerd calls the image, the second what the others do.
	names := map[string]string{"io.containerd.image.name": p.image + ":" + r.version, "org.opencontainers.image.ref.name": r.version}
	if err := files.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
		return err
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	r.digests[p.image] = digest
	entries, err := below(dir)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := tarTo(&archive, entries, r.time); err != nil {
		return err
	}
	return r.write(p.name+"_"+r.version+"_image.tar", archive.Bytes())
}

// forPlatform returns the image of one platform: the program, and who it runs as.
func (r *release) forPlatform(b binary) (v1.Image, error) {
	entries := []entry{
		{b.file(), executable, b.content},
		{"etc/passwd", plain, []byte("nonroot:x:" + user + ":" + user + ":nonroot:/:/sbin/nologin\n")},
		{"etc/group", plain, []byte("nonroot:x:" + user + ":\n")},
	}
	var content bytes.Buffer
	if err := tarTo(&content, entries, r.time); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: v1.History{
		Created: v1.Time{Time: r.time}, CreatedBy: "hack/release",
	}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, config.Created = b.on.os, b.on.arch, v1.Time{Time: r.time}
	config.Config = v1.Config{User: user + ":" + user, Entrypoint: []string{"/" + b.file()}, Env: []string{"PATH=/"}, Labels: r.labels(b.product)}
	return mutate.ConfigFile(image, config)
}

// labels returns what the Dockerfile says, too.
func (r *release) labels(p product) map[string]string {
	const prefix = "org.opencontainers.image."
	return map[string]string{
		prefix + "title":       p.name,
		prefix + "description": p.about,
		prefix + "source":      "https://" + project,
		prefix + "licenses":    "Apache-2.0",
		prefix + "version":     r.version,
		prefix + "revision":    r.commit,
		prefix + "created":     r.time.Format(time.RFC3339),
	}
}

// reference returns what a manifest calls an image: by its digest, which is there when the image is made. A trial without the image
// has the version alone.
func (r *release) reference(image string) string {
	name := image + ":" + r.version
	if digest, made := r.digests[image]; made {
		name += "@" + digest.String()
	}
	return name
}

// pinned returns a manifest that names the images of the release as they are, whatever version it named.
func (r *release) pinned(manifest []byte) []byte {
	for _, p := range r.products {
		if p.image != "" {
			named := regexp.MustCompile(regexp.QuoteMeta(p.image) + `:[A-Za-z0-9._-]+`)
			manifest = named.ReplaceAllLiteral(manifest, []byte(r.reference(p.image)))
		}
	}
	return manifest
}

// below returns the files of a directory by name.
func below(dir string) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(filepath.Join(dir, name)) //nolint:gosec // a directory of this program
		entries = append(entries, entry{name, plain, content})
		return err
	})
	return entries, err
}
