package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	out := flags.String("out", "dist", "the directory to make; it must not exist, or be empty")
	version := flags.String("version", "", "the version; default: what git describe says")
	dirty := flags.Bool("dirty", false, "release also what is not committed, to try it")
	key := flags.String("signing-key", "", "the file of the SSH key to sign the checksums with; its public half is in "+signers)
	only := flags.String("only", "", "the one platform to build for, such as linux/amd64; default: all")
	if err := flags.Parse(args); err != nil {
		return err
	}
	root, err := git(ctx, ".", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	changes, err := git(ctx, root, "status", "--porcelain")
	if err != nil {
		return err
	}
	if changes != "" && !*dirty {
		return fmt.Errorf("the work tree is not the commit: commit or stash these first, or try it with -dirty:\n%s", changes)
	}
	if *dirty && *key != "" {
		return errors.New("what is not committed is not signed: use -dirty or -signing-key, not both")
	}
	r := release{root: root, out: *out, version: *version, key: *key, parameters: parameters{Only: *only, Dirty: changes != ""}, products: products()}
	if *only != "" {
		if r.products, err = limited(r.products, *only); err != nil {
			return err
		}
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	if r.key == "" {
		log.Print("the release is not signed: to sign it, name a key with -signing-key")
	}
	return r.make(ctx)
}

// describe finds out what the commit is.
func (r *release) describe(ctx context.Context) (err error) {
	if r.version == "" {
		if r.version, err = git(ctx, r.root, "describe", "--tags", "--match", "v*", "--always", "--dirty"); err != nil {
			return err
		}
	}
	if err := r.tagged(); err != nil {
		return err
	}
	if r.commit, err = git(ctx, r.root, "rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := git(ctx, r.root, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	r.time = time.Unix(unix, 0).UTC()
	return err
}

func git(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...) //nolint:gosec // fixed commands
	cmd.Dir = dir
	out, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// release is one release of one commit.
type release struct {
	// root is the project's directory, out that of the files.
	root, out string
	// version and commit are written into what is made.
	version, commit string
	// time is that of the commit.
	time     time.Time
	products []product
	// key is the file of the key that signs, empty for none.
	key string
	// parameters are those of a trial.
	parameters parameters

	// digests are those of the images that are made, by their names. toolchain is the Go version that built the programs.
	digests   map[string]v1.Hash
	toolchain string
}

// make makes all files.
func (r *release) make(ctx context.Context) error {
	if err := os.MkdirAll(r.out, 0o755); err != nil { //nolint:gosec // the files are for all
		return err
	}
	if there, err := os.ReadDir(r.out); err != nil || len(there) > 0 {
		return errors.Join(err, fmt.Errorf("%s is not empty: name a new directory with -out", r.out))
	}
	licence, err := os.ReadFile(filepath.Join(r.root, "LICENSE"))
	if err != nil {
		return err
	}
	if r.key != "" {
		// A key that is not the project's is found now, and not when all is built.
		if _, err := r.signature(ctx, []byte("a trial")); err != nil {
			return err
		}
	}
	r.digests = map[string]v1.Hash{}
	for _, p := range r.products {
		if err := r.makeProduct(ctx, p, licence); err != nil {
			return err
		}
	}
	if err := errors.Join(r.manifests(), r.krew()); err != nil {
		return err
	}
	if err := r.provenance(); err != nil {
		return err
	}
	return r.checksums(ctx)
}

// makeProduct makes the files of one product.
func (r *release) makeProduct(ctx context.Context, p product, licence []byte) error {
	var programs []binary
	for _, on := range p.platforms {
		b, err := r.build(ctx, p, on)
		if err != nil {
			return err
		}
		if err := errors.Join(r.archive(b, licence), r.bill(b)); err != nil {
			return err
		}
		programs = append(programs, b)
	}
	if p.image == "" {
		return nil
	}
	return r.image(p, programs)
}

// path returns that of a file of the release.
func (r *release) path(name string) string { return filepath.Join(r.out, name) }
