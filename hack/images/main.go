// Command images builds the images of idalloc's programs and examples, without a container engine: each has static programs at /, the certificates of
// the public authorities, and a user without rights.
//
//	go run . -out DIR          writes them into an OCI layout
//	go run . -push REGISTRY    pushes them to REGISTRY/idalloc, and prints each with its digest
//	go run . -serve ADDRESS    is a registry in memory, for tests; it prints its address
//
// Arguments are the names of some images. The same commit and Go version give the same images.
package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// root is the repository.
const root = "../.."

// program is the content of an image: a package of a module of the repository. with names further commands of the module.
type program struct {
	name, module, path string
	with               []string
}

func programs() []program {
	return []program{
		{"idalloc", ".", "./cmd/idalloc", []string{"idalloc-countwatch"}},
		{"idalloc-controller", "controller", "./cmd/idalloc-controller", nil},
		{"idalloc-autoscaler", "autoscaler", "./cmd/idalloc-autoscaler", nil},
		{"fileworker", ".", "./examples/fileworker", nil},
		{"linkedworker", ".", "./examples/linkedworker", nil},
		{"partitionworker", ".", "./examples/partitionworker", nil},
		{"rabbitmq", "examples/rabbitmq", ".", nil},
		{"postgres", "examples/postgres", ".", nil},
	}
}

type options struct {
	version, revision, tag, platforms, out, push, serve string
	created                                             time.Time
}

func main() {
	var o options
	flag.StringVar(&o.version, "version", "dev", "what the programs say that they are")
	flag.StringVar(&o.revision, "revision", "unknown", "the commit")
	flag.StringVar(&o.tag, "tag", "", "the tag of the images")
	flag.StringVar(&o.platforms, "platforms", "linux/amd64,linux/arm64", "for which platforms, with commas between them")
	flag.StringVar(&o.out, "out", "", "the folder of an OCI layout")
	flag.StringVar(&o.push, "push", "", "the registry")
	flag.StringVar(&o.serve, "serve", "", "the address of a registry in memory")
	seconds := flag.Int64("created", 0, "the time of the images, in seconds of Unix")
	flag.Parse()
	o.created = time.Unix(*seconds, 0).UTC()
	if err := o.run(context.Background(), flag.Args()); err != nil {
		log.Fatal(err)
	}
}

func (o options) run(ctx context.Context, names []string) error {
	if o.serve != "" {
		return serve(ctx, o.serve)
	}
	var to layout.Path
	if o.out != "" {
		var err error
		if to, err = layout.Write(o.out, empty.Index); err != nil {
			return err
		}
	}
	bin, err := os.MkdirTemp("", "images")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(bin) }()
	for _, p := range programs() {
		if len(names) > 0 && !slices.Contains(names, p.name) {
			continue
		}
		ref, err := name.ParseReference(fmt.Sprintf("%s/idalloc/%s:%s", cmp.Or(o.push, "ghcr.io"), p.name, o.tag))
		if err != nil {
			return err
		}
		index, err := o.index(ctx, p, bin)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		if o.out != "" {
			// Docker and kind read one of these names, containerd the other.
			names := map[string]string{"org.opencontainers.image.ref.name": ref.Name(), "io.containerd.image.name": ref.Name()}
			if err := to.AppendIndex(index, layout.WithAnnotations(names)); err != nil {
				return err
			}
		}
		if o.push != "" {
			if err := push(ctx, ref, index); err != nil {
				return err
			}
		}
	}
	return nil
}

func push(ctx context.Context, ref name.Reference, index v1.ImageIndex) error {
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	if err := remote.WriteIndex(ref, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("push %s: %w", ref, err)
	}
	_, err = fmt.Fprintln(os.Stdout, ref.Name()+"@"+digest.String())
	return err
}

// index builds a program for all platforms.
func (o options) index(ctx context.Context, p program, bin string) (v1.ImageIndex, error) {
	index := v1.ImageIndex(empty.Index)
	for text := range strings.SplitSeq(o.platforms, ",") {
		platform, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		files := []string{filepath.Join(bin, p.name)}
		if err := o.build(ctx, platform, p.module, p.path, files[0]); err != nil {
			return nil, err
		}
		for _, name := range p.with {
			files = append(files, filepath.Join(bin, name))
			if err := o.build(ctx, platform, p.module, "./cmd/"+name, filepath.Join(bin, name)); err != nil {
				return nil, err
			}
		}
		image, err := o.image(p.name, files, platform)
		if err != nil {
			return nil, err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	return index, nil
}

func (o options) build(ctx context.Context, platform *v1.Platform, module, path, file string) error {
	build := exec.CommandContext(ctx, "go", "-C", filepath.Join(root, module), "build", "-trimpath", "-buildvcs=false", "-tags", "nethttpomithttp2", //nolint:gosec // of the table above
		"-ldflags", "-s -w -buildid= -X main.version="+o.version, "-o", file, path)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+platform.OS, "GOARCH="+platform.Architecture)
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	return build.Run()
}

func (o options) image(name string, programs []string, platform *v1.Platform) (v1.Image, error) {
	content, err := layer(programs)
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	added, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil }, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	if image, err = mutate.AppendLayers(image, added); err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Created = platform.OS, platform.Architecture, v1.Time{Time: o.created}
	config.Config = v1.Config{
		// It is a number, because runAsNonRoot cannot check a name.
		User:       "65532:65532",
		Entrypoint: []string{"/" + name},
		Env:        []string{"PATH=/"},
		Labels: map[string]string{
			"org.opencontainers.image.title":    name,
			"org.opencontainers.image.source":   "https://github.com/idalloc/idalloc",
			"org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.version":  o.version,
			"org.opencontainers.image.revision": o.revision,
		},
	}
	return mutate.ConfigFile(image, config)
}

// layer is a tar of the programs and of what distroless images have. Certificates that a client may trust only in part are left out.
func layer(programs []string) ([]byte, error) {
	var certificates, content bytes.Buffer
	for authority := range bundle.Roots() {
		if authority.Constraint != nil {
			continue
		}
		if err := pem.Encode(&certificates, &pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate}); err != nil {
			return nil, err
		}
	}
	w := tar.NewWriter(&content)
	type file struct {
		name string
		mode int64
		data []byte
	}
	files := []file{
		{"etc/passwd", 0o644, []byte("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n")},
		{"etc/ssl/certs/ca-certificates.crt", 0o644, certificates.Bytes()},
		{"tmp/", 0o1777, nil},
	}
	for _, path := range programs {
		code, err := os.ReadFile(path) //nolint:gosec // it was built a moment ago
		if err != nil {
			return nil, err
		}
		files = append(files, file{filepath.Base(path), 0o755, code})
	}
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: time.Unix(0, 0)}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	return content.Bytes(), w.Close()
}

func serve(ctx context.Context, address string) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(os.Stdout, listener.Addr()); err != nil {
		return err
	}
	server := http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}
