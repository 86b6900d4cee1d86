package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// signers is the file with the public keys of those who may sign a release.
const signers = "hack/release/allowed_signers"

// signature signs a message with the release's key, by ssh-keygen. A key that nobody could verify is refused. Only ssh-keygen reads the
// key, which may be in an agent or on a token.
func (r *release) signature(ctx context.Context, message []byte) ([]byte, error) {
	signature, err := keygen(ctx, message, "sign", "-f", r.key)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "idalloc-signature-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "sig")
	if err := os.WriteFile(file, signature, 0o600); err != nil {
		return nil, err
	}
	if _, err := keygen(ctx, message, "verify", "-f", filepath.Join(r.root, signers), "-I", "release", "-s", file); err != nil {
		return nil, fmt.Errorf("the public half of %s is not in %s: add it there, commit it and make the release again: %w", r.key, signers, err)
	}
	return signature, nil
}

// keygen runs ssh-keygen -Y on a message, and returns what it prints.
func keygen(ctx context.Context, message []byte, what string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh-keygen", append([]string{"-Y", what, "-n", "idalloc-release"}, args...)...) //nolint:gosec // fixed commands
	var out, complaint bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(message), &out, &complaint
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("ssh-keygen -Y %s: %w: %s", what, err, strings.TrimSpace(out.String()+complaint.String()))
	}
	return out.Bytes(), nil
}
