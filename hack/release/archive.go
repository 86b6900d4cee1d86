package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"
)

// Who unpacks an archive may read everything, and run programs.
const (
	plain      fs.FileMode = 0o644
	executable fs.FileMode = 0o755
)

// entry is a file in an archive. Nothing of where it came from is kept.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// archive writes the archive of a program.
func (r *release) archive(b binary, licence []byte) error {
	entries := []entry{{b.file(), executable, b.content}, {"LICENSE", plain, licence}}
	if b.beside != "" {
		script := b.beside
		if b.on.os == windows {
			script += ".cmd"
		}
		content, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(script)))
		if err != nil {
			return err
		}
		entries = append(entries, entry{path.Base(script), executable, content})
	}
	name, pack := r.stem(b)+".tar.gz", tarGz
	if b.on.os == windows {
		name, pack = r.stem(b)+".zip", zipped
	}
	content, err := pack(entries, r.time)
	if err != nil {
		return err
	}
	return r.write(name, content)
}

func tarGz(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := tarTo(w, entries, at); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func tarTo(w io.Writer, entries []entry, at time.Time) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.content)), ModTime: at, Format: tar.FormatUSTAR}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(e.content); err != nil {
			return err
		}
	}
	return t.Close()
}

func zipped(entries []entry, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: at}
		header.SetMode(e.mode)
		w, err := z.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.content); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func (r *release) write(name string, content []byte) error {
	return os.WriteFile(r.path(name), content, plain)
}

// checksums writes what sha256sum --check reads, and its signature if there is a key.
func (r *release) checksums(ctx context.Context) error {
	files, err := below(r.out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(f.content), f.name)
	}
	if err := r.write("SHA256SUMS", b.Bytes()); err != nil || r.key == "" {
		return err
	}
	signature, err := r.signature(ctx, b.Bytes())
	if err != nil {
		return err
	}
	return r.write("SHA256SUMS.sig", signature)
}
